import test from 'node:test';
import assert from 'node:assert/strict';
import { anthropic, anthropicTargets, weather, clock, asAnthropicTool, person } from '../support.mjs';

const textOf = (message) => message.content.filter((b) => b.type === 'text').map((b) => b.text).join('');

for (const target of anthropicTargets) {
  const client = anthropic(target.provider);
  const { model } = target;
  const ask = (content, more = {}) => ({ model, max_tokens: 200, messages: [{ role: 'user', content }], ...more });

  test(`messages: ${target.name}`, async () => {
    const answer = await client.messages.create(ask('mock: say=Hello from the mock', { system: 'Be brief.' }));
    assert.equal(answer.type, 'message');
    assert.equal(answer.role, 'assistant');
    assert.equal(textOf(answer), 'Hello from the mock');
    assert.equal(answer.stop_reason, 'end_turn');
    assert.equal(answer.usage.output_tokens, 4);
    assert.ok(answer.usage.input_tokens > 0);
  });

  test(`max_tokens ends an answer: ${target.name}`, async () => {
    const answer = await client.messages.create(ask('mock: chunks=30', { max_tokens: 5 }));
    assert.equal(answer.stop_reason, 'max_tokens');
    assert.equal(answer.usage.output_tokens, 5);
  });

  test(`streamed messages: ${target.name}`, async () => {
    const seen = [];
    const stream = client.messages.stream(ask('mock: split-utf8 ping'));
    stream.on('streamEvent', (event) => seen.push(event.type));
    const final = await stream.finalMessage();
    assert.match(textOf(final), /^naïve café — 東京 🙂/);
    assert.equal(seen[0], 'message_start');
    assert.equal(seen.at(-1), 'message_stop');
    assert.equal(final.stop_reason, 'end_turn');
    assert.ok(final.usage.output_tokens > 5);
  });

  test(`parallel and zero-argument tools, both turns: ${target.name}`, async () => {
    const tools = [weather, clock].map(asAnthropicTool);
    const first = await client.messages.create(ask('mock: parallel', { tools }));
    assert.equal(first.stop_reason, 'tool_use');
    const uses = first.content.filter((b) => b.type === 'tool_use');
    assert.deepEqual(uses.map((u) => u.name), ['get_weather', 'clock_now']);
    assert.ok(uses[0].input.city);
    assert.deepEqual(uses[1].input, {});
    const second = await client.messages.create(ask('', {
      tools,
      messages: [
        { role: 'user', content: 'What is the weather, and the time?' },
        { role: 'assistant', content: first.content },
        { role: 'user', content: uses.map((u) => ({ type: 'tool_result', tool_use_id: u.id, content: `result of ${u.name}` })) },
      ],
    }));
    assert.equal(textOf(second), 'The tool says: result of get_weather result of clock_now');
  });

  test(`streamed tools do not overlap: ${target.name}`, async () => {
    let open = null;
    const stream = client.messages.stream(ask('mock: parallel interleave', { tools: [weather, clock].map(asAnthropicTool) }));
    stream.on('streamEvent', (event) => {
      if (event.type === 'content_block_start') {
        assert.equal(open, null, 'a block starts within another');
        open = event.index;
      }
      if (event.type === 'content_block_delta') assert.equal(event.index, open);
      if (event.type === 'content_block_stop') open = null;
    });
    const final = await stream.finalMessage();
    const uses = final.content.filter((b) => b.type === 'tool_use');
    assert.equal(uses.length, 2);
    assert.ok(uses[0].input.city);
    assert.deepEqual(uses[1].input, {});
    assert.equal(final.stop_reason, 'tool_use');
  });

  test(`a forced tool: ${target.name}`, async () => {
    const answer = await client.messages.create(ask('Hi', { tools: [weather, clock].map(asAnthropicTool), tool_choice: { type: 'tool', name: 'clock_now' } }));
    assert.equal(answer.content.find((b) => b.type === 'tool_use').name, 'clock_now');
  });

  test(`an answer by JSON schema: ${target.name}`, async () => {
    const answer = await client.messages.create(ask('Who?', { output_config: { format: { type: 'json_schema', schema: person } } }));
    assert.deepEqual(Object.keys(JSON.parse(textOf(answer))).sort(), ['age', 'name', 'tags']);
  });

  test(`a stream that the client leaves: ${target.name}`, async () => {
    const stream = await client.messages.create(ask('mock: chunks=150 pace=10ms', { stream: true }));
    let events = 0;
    for await (const _ of stream) {
      if (++events === 4) stream.controller.abort();
    }
    assert.ok(events >= 4 && events < 140, `${events} events after the abort`);
    assert.equal(textOf(await client.messages.create(ask('mock: say=still here'))), 'still here');
  });
}

// A conversation in which the model thinks, calls a tool, gets its result and
// goes on: the provider refuses thinking that comes back changed.
for (const streamed of [false, true]) {
  test(`thinking over several turns${streamed ? ', streamed' : ''}`, async () => {
    const client = anthropic();
    const run = async (messages) => {
      const request = { model: 'claude-sonnet-4-5', max_tokens: 3000, thinking: { type: 'enabled', budget_tokens: 1024 }, tools: [weather, clock].map(asAnthropicTool), messages };
      return streamed ? client.messages.stream(request).finalMessage() : client.messages.create(request);
    };
    const messages = [{ role: 'user', content: 'What is the weather in Paris?' }];
    const first = await run(messages);
    assert.deepEqual(first.content.map((b) => b.type), ['thinking', 'tool_use']);
    assert.ok(first.content[0].thinking && first.content[0].signature);
    messages.push({ role: 'assistant', content: first.content }, { role: 'user', content: [{ type: 'tool_result', tool_use_id: first.content[1].id, content: 'rain' }] });
    const second = await run(messages);
    assert.deepEqual(second.content.map((b) => b.type), ['thinking', 'text']);
    messages.push({ role: 'assistant', content: second.content }, { role: 'user', content: 'And now? mock' });
    assert.ok((await run(messages)).content.length > 0);

    const altered = structuredClone(messages.slice(0, 3));
    altered[1].content[0].thinking += ' altered';
    await assert.rejects(run(altered), /Invalid `signature`/);
    altered[1].content.shift();
    await assert.rejects(run(altered), /Expected `thinking` or `redacted_thinking`/);
  });
}

test('redacted thinking goes back as it came', async () => {
  const client = anthropic();
  const request = { model: 'claude-sonnet-4-5', max_tokens: 3000, thinking: { type: 'enabled', budget_tokens: 1024 } };
  const first = await client.messages.create({ ...request, messages: [{ role: 'user', content: 'mock: redacted' }] });
  assert.equal(first.content[0].type, 'redacted_thinking');
  const second = await client.messages.create({
    ...request, messages: [{ role: 'user', content: 'Hi' }, { role: 'assistant', content: first.content }, { role: 'user', content: 'Go on' }],
  });
  assert.equal(second.stop_reason, 'end_turn');
});

test('prompt cache classes reach the client', async () => {
  const client = anthropic();
  const system = [{ type: 'text', text: `prefix ${process.pid} ${Date.now()} ` + 'words to cache '.repeat(600), cache_control: { type: 'ephemeral' } }];
  const usage = [];
  for (let i = 0; i < 2; i++) {
    usage.push((await client.messages.create({ model: 'claude-sonnet-4-5', max_tokens: 20, system, messages: [{ role: 'user', content: 'Hi' }] })).usage);
  }
  assert.ok(usage[0].cache_creation_input_tokens > 1024 && usage[0].cache_read_input_tokens === 0, JSON.stringify(usage));
  assert.equal(usage[1].cache_read_input_tokens, usage[0].cache_creation_input_tokens);
});

test('counting tokens', async () => {
  const counted = await anthropic().messages.countTokens({ model: 'claude-sonnet-4-5', messages: [{ role: 'user', content: 'Hello there' }] });
  assert.equal(counted.input_tokens, 7);
});
