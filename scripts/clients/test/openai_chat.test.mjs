import test from 'node:test';
import assert from 'node:assert/strict';
import { openai, openaiTargets, weather, clock, asOpenAITool, person } from '../support.mjs';

for (const target of openaiTargets) {
  const client = openai(target.provider);
  const { model } = target;
  const ask = (content, more = {}) => ({ model, messages: [{ role: 'user', content }], ...more });

  test(`chat: ${target.name}`, async () => {
    const answer = await client.chat.completions.create(ask('mock: say=Hello from the mock', {
      messages: [
        { role: 'developer', content: 'Be brief.' },
        { role: 'user', content: 'mock: say=Hello from the mock' },
      ],
      max_completion_tokens: 64,
    }));
    assert.equal(answer.object, 'chat.completion');
    assert.equal(answer.choices.length, 1);
    assert.equal(answer.choices[0].message.role, 'assistant');
    assert.equal(answer.choices[0].message.content, 'Hello from the mock');
    assert.equal(answer.choices[0].finish_reason, 'stop');
    assert.equal(answer.usage.completion_tokens, 4);
    assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
  });

  test(`max_tokens ends an answer: ${target.name}`, async () => {
    const answer = await client.chat.completions.create(ask('mock: chunks=30', { max_tokens: 5 }));
    assert.equal(answer.choices[0].finish_reason, 'length');
    assert.equal(answer.usage.completion_tokens, 5);
  });

  test(`streamed chat: ${target.name}`, async () => {
    const stream = await client.chat.completions.create(ask('mock: split-utf8 ping', { stream: true, stream_options: { include_usage: true } }));
    let text = '', finish = null, usage = null, chunks = 0;
    const ids = new Set();
    for await (const chunk of stream) {
      chunks++;
      ids.add(chunk.id);
      if (chunk.usage) usage = chunk.usage;
      text += chunk.choices[0]?.delta?.content ?? '';
      finish = chunk.choices[0]?.finish_reason ?? finish;
    }
    assert.match(text, /^naïve café — 東京 🙂 straße .* добрый день, été\.$/);
    assert.equal(finish, 'stop');
    assert.equal(ids.size, 1);
    assert.ok(chunks > 5, `${chunks} chunks`);
    assert.ok(usage.completion_tokens > 5 && usage.prompt_tokens > 0);
  });

  test(`a stream tells usage only when asked: ${target.name}`, async () => {
    const stream = await client.chat.completions.create(ask('Hello', { stream: true }));
    for await (const chunk of stream) {
      assert.ok(!chunk.usage, JSON.stringify(chunk));
      assert.equal(chunk.choices.length, 1);
    }
  });

  test(`parallel and zero-argument tools, both turns: ${target.name}`, async () => {
    const tools = [weather, clock].map(asOpenAITool);
    const messages = [{ role: 'user', content: 'mock: parallel' }];
    const first = await client.chat.completions.create({ model, messages, tools });
    const message = first.choices[0].message;
    assert.equal(first.choices[0].finish_reason, 'tool_calls');
    assert.deepEqual(message.tool_calls.map((c) => c.function.name), ['get_weather', 'clock_now']);
    assert.ok(JSON.parse(message.tool_calls[0].function.arguments).city);
    assert.deepEqual(JSON.parse(message.tool_calls[1].function.arguments), {});
    messages.push(message, ...message.tool_calls.map((c) => ({ role: 'tool', tool_call_id: c.id, content: `result of ${c.function.name}` })));
    messages[0] = { role: 'user', content: 'What is the weather, and the time?' };
    const second = await client.chat.completions.create({ model, messages, tools });
    assert.equal(second.choices[0].message.content, 'The tool says: result of get_weather result of clock_now');
  });

  test(`streamed tools: ${target.name}`, async () => {
    const stream = client.chat.completions.stream(ask('mock: parallel interleave', { tools: [weather, clock].map(asOpenAITool) }));
    const final = await stream.finalChatCompletion();
    const calls = final.choices[0].message.tool_calls;
    assert.equal(final.choices[0].finish_reason, 'tool_calls');
    assert.equal(calls.length, 2);
    assert.notEqual(calls[0].id, calls[1].id);
    assert.ok(JSON.parse(calls[0].function.arguments).city);
    assert.deepEqual(JSON.parse(calls[1].function.arguments), {});
  });

  test(`a forced tool and none: ${target.name}`, async () => {
    const tools = [weather, clock].map(asOpenAITool);
    const forced = await client.chat.completions.create(ask('Hi', { tools, tool_choice: { type: 'function', function: { name: 'clock_now' } } }));
    assert.equal(forced.choices[0].message.tool_calls[0].function.name, 'clock_now');
    const none = await client.chat.completions.create(ask('Hi', { tools, tool_choice: 'none' }));
    assert.ok(none.choices[0].message.content);
    assert.ok(!none.choices[0].message.tool_calls?.length);
  });

  test(`an answer by JSON schema: ${target.name}`, async () => {
    const answer = await client.chat.completions.create(ask('Who?', {
      response_format: { type: 'json_schema', json_schema: { name: 'person', strict: true, schema: person } },
    }));
    const got = JSON.parse(answer.choices[0].message.content);
    assert.deepEqual(Object.keys(got).sort(), ['age', 'name', 'tags']);
    assert.equal(answer.choices[0].finish_reason, 'stop');
  });

  test(`an image: ${target.name}`, async () => {
    const answer = await client.chat.completions.create(ask([
      { type: 'text', text: 'mock: say=A picture' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
    ]));
    assert.equal(answer.choices[0].message.content, 'A picture');
    assert.ok(answer.usage.prompt_tokens > 85);
  });

  test(`a stream that the client leaves: ${target.name}`, async () => {
    const stream = await client.chat.completions.create(ask('mock: chunks=500 pace=5ms', { stream: true }));
    let chunks = 0;
    for await (const _ of stream) {
      if (++chunks === 3) stream.controller.abort();
    }
    assert.ok(chunks >= 3 && chunks < 400, `${chunks} chunks after the abort`);
    const next = await client.chat.completions.create(ask('mock: say=still here'));
    assert.equal(next.choices[0].message.content, 'still here');
  });
}

test('what only OpenAI has: n, log probabilities, functions, seed', async () => {
  const client = openai();
  const answer = await client.chat.completions.create({
    model: 'gpt-4o-mini', n: 2, logprobs: true, top_logprobs: 2, seed: 7,
    messages: [{ role: 'user', content: 'Hello' }],
  });
  assert.deepEqual(answer.choices.map((c) => c.index), [0, 1]);
  assert.equal(answer.choices[0].logprobs.content[0].top_logprobs.length, 2);
  const old = await client.chat.completions.create({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'weather' }], functions: [weather] });
  assert.equal(old.choices[0].finish_reason, 'function_call');
  assert.equal(old.choices[0].message.function_call.name, 'get_weather');
});

test('JSON mode', async () => {
  const answer = await openai().chat.completions.create({
    model: 'gpt-4o-mini', response_format: { type: 'json_object' }, messages: [{ role: 'user', content: 'Answer in JSON.' }],
  });
  assert.equal(typeof JSON.parse(answer.choices[0].message.content), 'object');
});
