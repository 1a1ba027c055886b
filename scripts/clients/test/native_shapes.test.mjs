// Google's, Amazon's and Cohere's own clients ask a provider that speaks OpenAI's shape:
// the gateway translates.
import test from 'node:test';
import assert from 'node:assert/strict';
import { GoogleGenAI, Type } from '@google/genai';
import { BedrockRuntimeClient, ConverseCommand, ConverseStreamCommand } from '@aws-sdk/client-bedrock-runtime';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { CohereClientV2 } from 'cohere-ai';
import { gatewayURL, gatewayKey } from '../support.mjs';

const model = '@mock/gpt-4o-mini';
const said = 'mock: say=Hello from the mock';
const parameters = { type: 'object', properties: { city: { type: 'string' } } };

test('@google/genai', async () => {
  const { models } = new GoogleGenAI({ apiKey: gatewayKey, httpOptions: { baseUrl: gatewayURL } });
  const answer = await models.generateContent({ model, contents: said, config: { systemInstruction: 'Be brief.', maxOutputTokens: 100 } });
  assert.equal(answer.text, 'Hello from the mock');
  assert.equal(answer.candidates[0].finishReason, 'STOP');
  assert.ok(answer.usageMetadata.candidatesTokenCount > 0);
  let text = '', last;
  for await (const chunk of await models.generateContentStream({ model, contents: said })) {
    text += chunk.text ?? '';
    last = chunk;
  }
  assert.equal(text, 'Hello from the mock');
  assert.ok(last.usageMetadata.totalTokenCount > 0);
  const tools = [{ functionDeclarations: [{ name: 'get_weather', parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } } } }] }];
  const called = await models.generateContent({ model, contents: 'What is the weather?', config: { tools } });
  assert.equal(called.functionCalls[0].name, 'get_weather');
  await assert.rejects(models.generateContent({ model, contents: 'mock: status=429\nHi' }), (err) => err.status === 429 && /RESOURCE_EXHAUSTED/.test(err.message));
});

test('@aws-sdk/client-bedrock-runtime', async () => {
  const client = new BedrockRuntimeClient({
    endpoint: gatewayURL, region: 'us-east-1', credentials: { accessKeyId: 'a', secretAccessKey: 'b' }, maxAttempts: 1, requestHandler: new NodeHttpHandler(),
  });
  client.middlewareStack.add((next) => (args) => { args.request.headers['x-gateway-api-key'] = gatewayKey; return next(args); }, { step: 'finalizeRequest', priority: 'low' });
  const messages = [{ role: 'user', content: [{ text: said }] }];
  const answer = await client.send(new ConverseCommand({ modelId: model, messages, inferenceConfig: { maxTokens: 100 } }));
  assert.equal(answer.output.message.content[0].text, 'Hello from the mock');
  assert.equal(answer.stopReason, 'end_turn');
  assert.ok(answer.usage.outputTokens > 0);
  let text = '', used, stop;
  for await (const event of (await client.send(new ConverseStreamCommand({ modelId: model, messages }))).stream) {
    text += event.contentBlockDelta?.delta.text ?? '';
    used = event.metadata?.usage ?? used;
    stop = event.messageStop?.stopReason ?? stop;
  }
  assert.equal(text, 'Hello from the mock');
  assert.equal(stop, 'end_turn');
  assert.ok(used.outputTokens > 0);
  const called = await client.send(new ConverseCommand({
    modelId: model, messages: [{ role: 'user', content: [{ text: 'What is the weather?' }] }],
    toolConfig: { tools: [{ toolSpec: { name: 'get_weather', inputSchema: { json: parameters } } }] },
  }));
  assert.equal(called.stopReason, 'tool_use');
  assert.equal(called.output.message.content.find((b) => b.toolUse).toolUse.name, 'get_weather');
  await assert.rejects(client.send(new ConverseCommand({ modelId: model, messages: [{ role: 'user', content: [{ text: 'mock: status=429\nHi' }] }] })), { name: 'ThrottlingException' });
  await assert.rejects(client.send(new ConverseCommand({ modelId: model, messages: [] })), { name: 'ValidationException' });
  client.middlewareStack.add((next) => (args) => { args.request.headers['x-gateway-api-key'] = 'wrong'; return next(args); }, { step: 'finalizeRequest', priority: 'low' });
  await assert.rejects(client.send(new ConverseCommand({ modelId: model, messages })), { name: 'AccessDeniedException' });
});

test('cohere-ai', async () => {
  const client = new CohereClientV2({ token: gatewayKey, environment: gatewayURL });
  const messages = [{ role: 'user', content: said }];
  const answer = await client.chat({ model, messages }, { maxRetries: 0 });
  assert.equal(answer.message.content[0].text, 'Hello from the mock');
  assert.equal(answer.finishReason, 'COMPLETE');
  let text = '';
  for await (const event of await client.chatStream({ model, messages }, { maxRetries: 0 })) if (event.type === 'content-delta') text += event.delta.message.content.text;
  assert.equal(text, 'Hello from the mock');
  const called = await client.chat({ model, messages: [{ role: 'user', content: 'What is the weather?' }], tools: [{ type: 'function', function: { name: 'get_weather', parameters } }] }, { maxRetries: 0 });
  assert.equal(called.finishReason, 'TOOL_CALL');
  assert.equal(called.message.toolCalls[0].function.name, 'get_weather');
});
