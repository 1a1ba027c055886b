// Cohere's own client, pointed at the gateway: its requests pass through to a
// saved provider.
import test from 'node:test';
import assert from 'node:assert/strict';
import { CohereClientV2, CohereError } from 'cohere-ai';
import { gatewayURL, gatewayKey } from '../support.mjs';

async function call(method, path, key, body, headers = {}) {
  const got = await fetch(gatewayURL + path, { method, headers: { 'x-gateway-api-key': key, 'content-type': 'application/json', ...headers }, body: body && JSON.stringify(body) });
  const text = await got.text();
  assert.equal(got.status, 200, `${method} ${path}: ${text}`);
  return JSON.parse(text);
}

const saved = (async () => {
  const { host } = await call('GET', '/proxy/echo/x', gatewayKey, undefined, { 'x-gateway-provider': '@mock' });
  const admin = process.env.GATEWAY_ADMIN_KEY;
  await call('POST', '/integrations', admin, { name: 'Cohere of the client', slug: 'cohereclient', ai_provider_id: 'cohere', key: 'mock-key', configurations: { custom_host: `http://${host}` } });
  await call('PUT', '/integrations/cohereclient/workspaces', admin, { workspaces: [], global_workspace_access: { enabled: true }, override_existing_workspace_access: true });
  return '@cohereclient';
})();

// cohere gives a client that signs in with the gateway's key.
async function cohere() {
  return new CohereClientV2({ token: gatewayKey, environment: gatewayURL + '/proxy', headers: { 'x-gateway-provider': await saved } });
}

const ask = (content) => ({ model: 'command-r', messages: [{ role: 'user', content }] });
const once = { maxRetries: 0 };

test('chat', async () => {
  const answer = await (await cohere()).chat(ask('mock: say=Hello from the mock'), once);
  assert.equal(answer.message.content[0].text, 'Hello from the mock');
  assert.equal(answer.finishReason, 'COMPLETE');
  assert.equal(answer.usage.billedUnits.outputTokens, 4);
});

test('a streamed chat', async () => {
  let text = '';
  const kinds = [];
  for await (const event of await (await cohere()).chatStream(ask('mock: say=Hello from the mock'), once)) {
    kinds.push(event.type);
    if (event.type === 'content-delta') text += event.delta.message.content.text;
  }
  assert.equal(text, 'Hello from the mock');
  assert.equal(kinds[0], 'message-start');
  assert.equal(kinds.at(-1), 'message-end');
});

test('tools', async () => {
  const answer = await (await cohere()).chat({
    ...ask('What is the weather?'), toolChoice: 'REQUIRED',
    tools: [{ type: 'function', function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } } }],
  }, once);
  assert.equal(answer.finishReason, 'TOOL_CALL');
  assert.equal(answer.message.toolCalls[0].function.name, 'get_weather');
});

test('embed and rerank', async () => {
  const client = await cohere();
  const vectors = await client.embed({ model: 'embed-english-v3.0', inputType: 'search_document', texts: ['a', 'b'], embeddingTypes: ['float'] }, once);
  assert.equal(vectors.embeddings.float.length, 2);
  const ranked = await client.rerank({ model: 'rerank-v3.5', query: 'blue bird', documents: ['red fish', 'blue bird'], topN: 1 }, once);
  assert.equal(ranked.results[0].index, 1);
});

test('an error of the provider', async () => {
  await assert.rejects((await cohere()).chat(ask('mock: status=429'), once), (e) => e instanceof CohereError && e.statusCode === 429);
});
