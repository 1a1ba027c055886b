// Amazon's own client for Bedrock, pointed at the gateway: its requests pass
// through and are signed anew with the saved credential.
import test from 'node:test';
import assert from 'node:assert/strict';
import { BedrockRuntimeClient, ConverseCommand, ConverseStreamCommand, InvokeModelCommand, InvokeModelWithResponseStreamCommand, CountTokensCommand } from '@aws-sdk/client-bedrock-runtime';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { gatewayURL, gatewayKey, openai } from '../support.mjs';

const claude = 'anthropic.claude-sonnet-4-5-20250929-v1:0';

async function call(method, path, key, body, headers = {}) {
  const got = await fetch(gatewayURL + path, { method, headers: { 'x-gateway-api-key': key, 'content-type': 'application/json', ...headers }, body: body && JSON.stringify(body) });
  const text = await got.text();
  assert.equal(got.status, 200, `${method} ${path}: ${text}`);
  return JSON.parse(text);
}

const saved = (async () => {
  const { host } = await call('GET', '/proxy/echo/x', gatewayKey, undefined, { 'x-gateway-provider': '@mock' });
  const admin = process.env.GATEWAY_ADMIN_KEY;
  await call('POST', '/integrations', admin, {
    name: 'Bedrock of the client', slug: 'bedrockclient', ai_provider_id: 'bedrock',
    configurations: { aws_auth_type: 'accessKey', aws_region: 'us-east-1', aws_access_key_id: 'AKIDMOCK', aws_secret_access_key: 'mock-secret', custom_host: `http://${host}` },
  });
  await call('PUT', '/integrations/bedrockclient/workspaces', admin, { workspaces: [], global_workspace_access: { enabled: true }, override_existing_workspace_access: true });
  return '@bedrockclient';
})();

// bedrock gives a client whose own keys are worth nothing.
async function bedrock() {
  const provider = await saved;
  const client = new BedrockRuntimeClient({
    region: 'us-east-1', endpoint: gatewayURL, maxAttempts: 1, requestHandler: new NodeHttpHandler(),
    credentials: { accessKeyId: 'AKIDNOBODY', secretAccessKey: 'nothing' },
  });
  client.middlewareStack.add((next) => (args) => {
    Object.assign(args.request.headers, { 'x-gateway-api-key': gatewayKey, 'x-gateway-provider': provider });
    return next(args);
  }, { step: 'build' });
  return client;
}

const say = (text) => ({ modelId: claude, messages: [{ role: 'user', content: [{ text }] }], inferenceConfig: { maxTokens: 100 } });

test('Converse', async () => {
  const answer = await (await bedrock()).send(new ConverseCommand({ ...say('mock: say=Hello from the mock'), system: [{ text: 'Be brief.' }] }));
  assert.equal(answer.output.message.content[0].text, 'Hello from the mock');
  assert.equal(answer.stopReason, 'end_turn');
  assert.equal(answer.usage.outputTokens, 4);
});

test('ConverseStream, with a tool', async () => {
  const toolConfig = { tools: [{ toolSpec: { name: 'get_weather', inputSchema: { json: { type: 'object', properties: { city: { type: 'string' } } } } } }] };
  const { stream } = await (await bedrock()).send(new ConverseStreamCommand({ ...say('The weather?'), toolConfig }));
  let input = '', stop, usage, name;
  for await (const event of stream) {
    name ??= event.contentBlockStart?.start?.toolUse?.name;
    input += event.contentBlockDelta?.delta?.toolUse?.input ?? '';
    stop ??= event.messageStop?.stopReason;
    usage ??= event.metadata?.usage;
  }
  assert.equal(name, 'get_weather');
  assert.equal(typeof JSON.parse(input).city, 'string');
  assert.equal(stop, 'tool_use');
  assert.ok(usage.totalTokens > 0);
});

test('InvokeModel, plain and streamed', async () => {
  const body = JSON.stringify({ anthropic_version: 'bedrock-2023-05-31', max_tokens: 50, messages: [{ role: 'user', content: 'mock: say=Hi' }] });
  const client = await bedrock();
  const plain = await client.send(new InvokeModelCommand({ modelId: claude, body, contentType: 'application/json' }));
  assert.equal(JSON.parse(new TextDecoder().decode(plain.body)).content[0].text, 'Hi');
  const streamed = await client.send(new InvokeModelWithResponseStreamCommand({ modelId: claude, body, contentType: 'application/json' }));
  let chunks = 0;
  for await (const event of streamed.body) chunks += event.chunk ? 1 : 0;
  assert.equal(chunks, 2);
});

test('CountTokens', async () => {
  const answer = await (await bedrock()).send(new CountTokensCommand({ modelId: claude, input: { converse: { messages: say('Hello').messages } } }));
  assert.ok(answer.inputTokens > 0);
});

test('errors keep their names, before a stream and in it', async () => {
  const client = await bedrock();
  await assert.rejects(client.send(new ConverseCommand(say('mock: status=429'))), { name: 'ThrottlingException' });
  await assert.rejects(client.send(new ConverseCommand({ ...say('x'), messages: [] })), { name: 'ValidationException' });
  const { stream } = await client.send(new ConverseStreamCommand(say('mock: error-event=modelStreamErrorException after=3')));
  await assert.rejects(async () => { for await (const event of stream) assert.ok(event); }, { name: 'ModelStreamErrorException' });
});

test('the same provider by the OpenAI client', async () => {
  const answer = await openai(await saved).chat.completions.create({ model: claude, messages: [{ role: 'user', content: 'mock: say=Hello' }] });
  assert.equal(answer.choices[0].message.content, 'Hello');
});
