import test from 'node:test';
import assert from 'node:assert/strict';
import { openai } from '../support.mjs';

const client = openai();

test('completions, plain and streamed', async () => {
  const plain = await client.completions.create({ model: 'gpt-3.5-turbo-instruct', prompt: 'mock: say=once upon a time', max_tokens: 50 });
  assert.equal(plain.object, 'text_completion');
  assert.equal(plain.choices[0].text, 'once upon a time');
  assert.equal(plain.usage.completion_tokens, 4);
  let text = '';
  for await (const chunk of await client.completions.create({ model: 'gpt-3.5-turbo-instruct', prompt: 'mock: say=once upon a time', max_tokens: 50, stream: true })) {
    text += chunk.choices[0]?.text ?? '';
  }
  assert.equal(text, 'once upon a time');
});

test('embeddings, as numbers and in base64', async () => {
  const input = ['the red fox', 'the red dog'];
  const decoded = await client.embeddings.create({ model: 'text-embedding-3-small', input, dimensions: 64 }); // the library asks for base64
  const numbers = await client.embeddings.create({ model: 'text-embedding-3-small', input, dimensions: 64, encoding_format: 'float' });
  assert.equal(numbers.data.length, 2);
  assert.equal(numbers.data[1].embedding.length, 64);
  numbers.data[0].embedding.forEach((x, i) => assert.ok(Math.abs(x - decoded.data[0].embedding[i]) < 1e-6));
  assert.equal(numbers.usage.prompt_tokens, 6);
});

test('models', async () => {
  const list = await client.models.list();
  assert.ok(list.data.length > 0);
  for (const model of list.data) {
    assert.equal(model.object, 'model');
    assert.ok(model.id);
  }
  const one = await client.models.retrieve('gpt-4o-mini');
  assert.equal(one.id, 'gpt-4o-mini');
});

test('a path that the gateway passes through', async () => {
  const answer = await client.post('/echo/some/path?x=1', { body: { any: 'thing' } });
  assert.equal(answer.method, 'POST');
  assert.equal(answer.raw_path, '/v1/echo/some/path');
  assert.equal(answer.raw_query, 'x=1');
  assert.equal(answer.body, '{"any":"thing"}');
  assert.ok(answer.headers.Authorization[0].startsWith('Bearer mock-'), 'the provider gets its own credential');
  for (const name of Object.keys(answer.headers)) {
    assert.ok(!name.toLowerCase().startsWith('x-gateway-'), `${name} went upstream`);
  }
});
