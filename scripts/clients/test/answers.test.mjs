// What providers answer against their own documents, read by the official libraries. A host of
// this test answers each request as the last segment of its address says.
import test from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import { GoogleGenAI } from '@google/genai';
import { openai, anthropic, gatewayURL, gatewayKey } from '../support.mjs';

const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const call = (args, name = 'f', id = 'call_1') => ({ id, type: 'function', function: { name, arguments: args } });
const calls = (finish, ...list) => ({ message: { role: 'assistant', content: null, tool_calls: list }, finish_reason: finish });
const text = (content, finish = 'stop') => ({ message: { role: 'assistant', content }, finish_reason: finish });

let turns = 0;
const answers = {
  // vLLM answers so with a named tool_choice.
  stop: () => (turns++ === 0 ? calls('stop', call('{"a":"x"}')) : text('done')),
  cut: () => calls('length', call('{"a":"x')),
  broken: () => calls('tool_calls', call('{"a":1 "b":2}')),
  list: () => text([{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] }, { type: 'text', text: 'Yes' }]),
  object: () => calls('tool_calls', call({ a: 'x' })),
  unindexed: () => calls('tool_calls', call('{"a":"x"}'), call('{}', 'g', 'call_2')),
  pieces: () => [{ role: 'assistant', content: null, tool_calls: [{ index: 0, ...call('', 'get_') }] }, { tool_calls: [{ index: 0, function: { name: 'weather' } }] }, { tool_calls: [{ index: 0, function: { arguments: '{}' } }] }],
  sensitive: () => text('', 'sensitive'),
  failed: () => text('', 'network_error'),
};

// stream writes an answer as chunks; lists of deltas end with tool_calls.
function stream(res, answer) {
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  const chunk = (delta, finish_reason = null) => res.write(`data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
  if (Array.isArray(answer)) {
    answer.forEach((delta) => chunk(delta));
    chunk({}, 'tool_calls');
  } else {
    chunk(answer.message);
    chunk({}, answer.finish_reason);
  }
  res.write(`data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage })}\n\n`);
  res.end('data: [DONE]\n\n');
}

const server = http.createServer(async (req, res) => {
  let body = '';
  for await (const piece of req) body += piece;
  const [, name] = req.url.split('/');
  if (req.url.endsWith('/embeddings')) {
    res.writeHead(200, { 'content-type': 'application/json' });
    return res.end(JSON.stringify({ object: 'list', model: 'm', data: [{ object: 'embedding', index: 0, embedding: [0.5, -2] }], usage: { prompt_tokens: 1, total_tokens: 1 } }));
  }
  const answer = answers[name]();
  if (JSON.parse(body).stream) return stream(res, answer);
  res.writeHead(200, { 'content-type': 'application/json' });
  res.end(JSON.stringify({ id: 'c1', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, ...answer }], usage }));
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
test.after(() => server.close());

const at = (name) => ({ 'x-gateway-provider': 'deepinfra', authorization: 'Bearer x', 'x-gateway-api-key': gatewayKey, 'x-gateway-custom-host': `http://127.0.0.1:${server.address().port}/${name}` });
const chat = (name) => openai(null, { defaultHeaders: at(name) });
const claude = (name) => anthropic('deepinfra', { defaultHeaders: at(name) });
const google = (name) => new GoogleGenAI({ apiKey: 'x', httpOptions: { baseUrl: gatewayURL.replace(/\/v1$/, ''), apiVersion: 'v1beta', headers: at(name) } });
const ask = { model: 'm', messages: [{ role: 'user', content: 'Go' }] };
const tool = { name: 'f', description: 'd', input_schema: { type: 'object', properties: { a: { type: 'string' } } } };

test('the tool runner of Anthropic runs tools beside "stop"', async () => {
  for (const stream of [false, true]) {
    turns = 0;
    let ran = 0;
    const runner = claude('stop').beta.messages.toolRunner({ ...ask, max_tokens: 100, stream, tools: [{ ...tool, run: (input) => { ran++; assert.equal(input.a, 'x'); return 'ok'; }, parse: (x) => x }] });
    const last = await runner.runUntilDone();
    assert.equal(ran, 1);
    assert.equal(last.stop_reason, 'end_turn');
  }
});

test('a call that was cut, or that cannot be read, is not run', async () => {
  const cut = await claude('cut').messages.create({ ...ask, max_tokens: 100, tools: [tool] });
  assert.equal(cut.stop_reason, 'max_tokens');
  assert.deepEqual(cut.content, []);
  await assert.rejects(claude('broken').messages.create({ ...ask, max_tokens: 100, tools: [tool] }), /not a JSON object/);
  await assert.rejects(claude('broken').messages.stream({ ...ask, max_tokens: 100, tools: [tool] }).finalMessage());
  const malformed = await google('broken').models.generateContent({ model: 'm', contents: 'Go' });
  assert.equal(malformed.candidates[0].finishReason, 'MALFORMED_FUNCTION_CALL');
  assert.equal(malformed.functionCalls, undefined);
});

test('shapes that only compatible hosts send', async () => {
  const plain = await chat('list').chat.completions.create(ask);
  assert.equal(plain.choices[0].message.content, 'Yes');
  const streamed = await chat('list').chat.completions.stream(ask).finalContent();
  assert.equal(streamed, 'Yes');
  const object = await chat('object').chat.completions.create(ask);
  assert.equal(object.choices[0].message.tool_calls[0].function.arguments, '{"a":"x"}');
  const indexed = await chat('unindexed').chat.completions.stream(ask).finalMessage();
  assert.deepEqual(indexed.tool_calls.map((c) => c.function.name), ['f', 'g']);
  const named = await chat('pieces').chat.completions.stream(ask).finalMessage();
  assert.equal(named.tool_calls[0].function.name, 'get_weather');
});

test('embeddings, stop reasons, failures and ids', async () => {
  const vectors = await openai(null, { defaultHeaders: { ...at('any'), 'x-gateway-provider': 'together-ai' } }).embeddings.create({ model: 'm', input: 'a' });
  assert.deepEqual(vectors.data[0].embedding, [0.5, -2]);
  const refused = await claude('sensitive').messages.create({ ...ask, max_tokens: 100 });
  assert.equal(refused.stop_reason, 'refusal');
  await assert.rejects(claude('failed').messages.create({ ...ask, max_tokens: 100 }), (e) => e.status === 502);
  await assert.rejects(chat('failed').chat.completions.create(ask), (e) => e.status === 502);
  const ids = new Set();
  for (let i = 0; i < 3; i++) {
    const { id } = await claude('list').messages.create({ ...ask, max_tokens: 100 });
    assert.match(id, /^msg_/);
    ids.add(id);
  }
  assert.equal(ids.size, 3);
});
