// The SDK of the gateway whose API this one follows, unchanged: base URL and key, with the prefix
// of its headers as an alias (GATEWAY_HEADER_ALIASES).
import test from 'node:test';
import assert from 'node:assert/strict';
import { Portkey } from 'portkey-ai';
import { gatewayURL, gatewayKey } from '../support.mjs';

const client = (options = {}) => new Portkey({ baseURL: gatewayURL, apiKey: gatewayKey, provider: '@mock', maxRetries: 0, ...options });
const admin = () => client({ apiKey: process.env.GATEWAY_ADMIN_KEY, provider: undefined });
const ask = (content, more = {}) => ({ model: 'gpt-4o-mini', messages: [{ role: 'user', content }], ...more });

test('chat', async () => {
  const answer = await client().chat.completions.create(ask('mock: say=Hello from the mock'));
  assert.equal(answer.choices[0].message.content, 'Hello from the mock');
});

test('a streamed chat', async () => {
  let text = '';
  for await (const chunk of await client().chat.completions.create(ask('mock: say=Hello from the mock', { stream: true }))) {
    text += chunk.choices[0]?.delta?.content ?? '';
  }
  assert.equal(text, 'Hello from the mock');
});

test('embeddings', async () => {
  const answer = await client().embeddings.create({ model: 'text-embedding-3-small', input: ['a', 'b'] });
  assert.equal(answer.data.length, 2);
});

test('a config in the client', async () => {
  const answer = await client({ provider: undefined, config: { strategy: { mode: 'fallback' }, targets: [{ provider: '@nobody' }, { provider: '@mock' }] } }).chat.completions.create(ask('mock: say=Second'));
  assert.equal(answer.choices[0].message.content, 'Second');
});

test('metadata and trace of a request', async () => {
  const answer = await client().chat.completions.create(ask('mock: say=Traced'), { traceID: 'a-trace-of-the-sdk', metadata: { team: 'sdk' } });
  assert.equal(answer.choices[0].message.content, 'Traced');
});

test('a refusal', async () => {
  await assert.rejects(client({ provider: 'opneai' }).chat.completions.create(ask('x')), (e) => e.status === 400 && /did you mean openai/.test(e.message));
});

test('administration', async () => {
  const made = await admin().configs.create({ name: 'of the SDK', config: { provider: '@mock' }, workspace_id: 'default' });
  assert.ok(made.id && made.slug);
  assert.equal((await admin().configs.retrieve({ slug: made.slug })).slug, made.slug);
  assert.ok((await admin().configs.list({ workspace_id: 'default' })).data.some((c) => c.slug === made.slug));
  const workspaces = await admin().admin.workspaces.list({});
  assert.ok(workspaces.data.length > 0);
});
