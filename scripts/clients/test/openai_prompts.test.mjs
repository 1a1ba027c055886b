import test from 'node:test';
import assert from 'node:assert/strict';
import { gatewayURL, openai } from '../support.mjs';
import { admin } from '../workspaces.mjs';

const workspace = (await admin('GET', '/admin/workspaces/default')).id;
const collection = (await admin('GET', `/collections?workspace_id=${workspace}`)).data[0].id;

// saved makes a prompt on the mock provider and gives its slug.
async function saved(members) {
  const made = await admin('POST', '/prompts', {
    name: 'Of a client', workspace_id: workspace, collection_id: collection, virtual_key: 'mock', model: 'gpt-4o-mini', parameters: { max_tokens: 30 }, ...members,
  });
  return made.slug;
}

const part = (await admin('POST', '/prompts/partials', { name: 'A part', workspace_id: workspace, string: 'Be {{how}}.' })).slug;
const chat = await saved({
  string: JSON.stringify([{ role: 'system', content: `{{>${part}}}` }, { role: 'user', content: 'mock: say=Hello {{name}}' }]),
});
const text = await saved({ string: 'mock: say=Once upon {{when}}', model: 'gpt-3.5-turbo-instruct', template_metadata: { template_type: 'completion' } });

// The library's base URL may name the prompt: its completions are then those of the
// template.
const of = (slug) => openai(null, { baseURL: `${gatewayURL}/prompts/${slug}` });

test('a prompt by the base URL, plain and streamed', async () => {
  const client = of(text);
  const plain = await client.completions.create({ variables: { when: 'a time' } });
  assert.equal(plain.object, 'text_completion');
  assert.equal(plain.choices[0].text, 'Once upon a time');
  let streamed = '';
  for await (const chunk of await client.completions.create({ variables: { when: 'a time' }, stream: true })) streamed += chunk.choices[0]?.text ?? '';
  assert.equal(streamed, 'Once upon a time');
});

test('a prompt of messages by its path, plain and streamed', async () => {
  const client = openai(null);
  const body = { variables: { name: 'Ada', how: 'brief' }, temperature: 0.2 };
  const plain = await client.post(`/prompts/${chat}/completions`, { body });
  assert.equal(plain.object, 'chat.completion');
  assert.equal(plain.choices[0].message.content, 'Hello Ada');
  assert.ok(plain.usage.total_tokens > 0);
  let streamed = '';
  for await (const chunk of await client.post(`/prompts/${chat}@1/completions`, { body: { ...body, stream: true, stream_options: { include_usage: true } }, stream: true })) {
    assert.equal(chunk.object, 'chat.completion.chunk');
    streamed += chunk.choices[0]?.delta?.content ?? '';
  }
  assert.equal(streamed, 'Hello Ada');
});

test('what a prompt renders to is a request of the library', async () => {
  const client = openai();
  const { success, data } = await client.post(`/prompts/${chat}/render`, { body: { variables: { name: 'Bob', how: 'kind' } } });
  assert.equal(success, true);
  assert.equal(data.messages[0].content, 'Be kind.');
  const answer = await client.chat.completions.create(data);
  assert.equal(answer.choices[0].message.content, 'Hello Bob');
});

test('errors of prompts are errors of the library', async () => {
  const client = openai(null);
  await assert.rejects(client.post('/prompts/pp-nobody-000000/completions', { body: {} }), (e) => e.constructor.name === 'NotFoundError' && e.status === 404);
  await assert.rejects(client.post(`/prompts/${chat}/completions`, { body: { variables: [] } }), (e) => e.status === 400 && e.param === 'variables');
});
