import test from 'node:test';
import assert from 'node:assert/strict';
import { openai, openaiTargets, weather, clock, person } from '../support.mjs';

const asTool = (t) => ({ type: 'function', strict: false, ...t });
const textOf = (answer) => answer.output.filter((i) => i.type === 'message').flatMap((i) => i.content).map((c) => c.text).join('');

for (const target of openaiTargets) {
  const client = openai(target.provider);
  const { model } = target;

  test(`responses: ${target.name}`, async () => {
    const answer = await client.responses.create({ model, instructions: 'Be brief.', input: 'mock: say=Hello from the mock', max_output_tokens: 64 });
    assert.equal(answer.object, 'response');
    assert.equal(answer.status, 'completed');
    assert.equal(answer.output_text, 'Hello from the mock');
    assert.equal(answer.usage.output_tokens, 4);
    assert.equal(answer.usage.total_tokens, answer.usage.input_tokens + answer.usage.output_tokens);
  });

  test(`responses, streamed: ${target.name}`, async () => {
    const stream = await client.responses.create({ model, input: [{ role: 'user', content: [{ type: 'input_text', text: 'mock: split-utf8 ping' }] }], stream: true });
    let text = '', last = null, next = 0;
    for await (const event of stream) {
      assert.equal(event.sequence_number, next++);
      if (event.type === 'response.output_text.delta') text += event.delta;
      last = event;
    }
    assert.match(text, /^naïve café — 東京 🙂 straße .* добрый день, été\.$/);
    assert.equal(last.type, 'response.completed');
    assert.equal(textOf(last.response), text);
    assert.ok(last.response.usage.output_tokens > 5 && last.response.usage.input_tokens > 0);
  });

  test(`responses, the library's own stream: ${target.name}`, async () => {
    const stream = client.responses.stream({ model, input: 'what is the weather?', tools: [weather, clock].map(asTool) });
    const names = [];
    for await (const event of stream) names.push(event.type);
    const answer = await stream.finalResponse();
    assert.equal(names[0], 'response.created');
    assert.ok(names.includes('response.function_call_arguments.done'));
    const call = answer.output.find((i) => i.type === 'function_call');
    assert.equal(call.name, 'get_weather');
    JSON.parse(call.arguments);
  });

  test(`responses, parallel tools and the turn after them: ${target.name}`, async () => {
    const tools = [weather, clock].map(asTool);
    const input = [{ role: 'user', content: 'both please\nmock: parallel' }];
    const first = await client.responses.create({ model, input, tools });
    const calls = first.output.filter((i) => i.type === 'function_call');
    assert.equal(calls.length, 2);
    assert.notEqual(calls[0].call_id, calls[1].call_id);
    input.push(...first.output, ...calls.map((c) => ({ type: 'function_call_output', call_id: c.call_id, output: 'fine weather' })));
    const second = await client.responses.create({ model, input, tools: tools.slice(), tool_choice: 'none' });
    assert.ok(second.output_text.length > 0);
  });

  test(`responses in a JSON schema: ${target.name}`, async () => {
    const answer = await client.responses.create({
      model, input: 'A person, please', text: { format: { type: 'json_schema', name: 'person', schema: person, strict: true } },
    });
    const value = JSON.parse(answer.output_text);
    assert.deepEqual(Object.keys(value).sort(), ['age', 'name', 'tags']);
  });

  test(`responses that are cut: ${target.name}`, async () => {
    const answer = await client.responses.create({ model, input: 'mock: chunks=40', max_output_tokens: 16 });
    assert.equal(answer.status, 'incomplete');
    assert.equal(answer.incomplete_details.reason, 'max_output_tokens');
  });

  test(`responses, refused and broken: ${target.name}`, async () => {
    await assert.rejects(client.responses.create({ model, input: 'x', temperature: 3 }), (e) => e.status === 400 && e.param === 'temperature');
    await assert.rejects(client.responses.create({ model, input: 'mock: status=429' }), (e) => e.status === 429);
    const stream = await client.responses.create({ model, input: 'mock: chunks=20 cut=after:6', stream: true });
    await assert.rejects(async () => { for await (const event of stream) void event; });
  });
}
