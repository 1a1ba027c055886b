import test from 'node:test';
import assert from 'node:assert/strict';
import { ways, missing, logged, all } from '../workspaces.mjs';

const lookup = { type: 'function', function: { name: 'look_up', description: 'Looks something up', parameters: { type: 'object', properties: {} } } };
const textOf = (message) => message.content.map((c) => c.text.value).join('');

for (const way of await ways('assistants')) {
  const { assistants, threads } = way.client.beta;

  test(`assistants, threads and messages: ${way.name}`, async () => {
    const made = await assistants.create({ model: 'gpt-4o-mini', name: 'one', instructions: 'Be brief.', metadata: { a: 'b' } });
    assert.equal(made.object, 'assistant');
    assert.equal((await assistants.update(made.id, { name: 'two' })).name, 'two');
    const read = await assistants.retrieve(made.id);
    assert.deepEqual([read.name, read.instructions, read.metadata], ['two', 'Be brief.', { a: 'b' }]);
    const second = await assistants.create({ model: 'gpt-4o-mini' });
    const listed = (await all(assistants.list({ limit: 1, order: 'asc' }))).map((a) => a.id);
    assert.ok(listed.indexOf(made.id) >= 0 && listed.indexOf(made.id) < listed.indexOf(second.id));
    await missing(way, (c) => c.beta.assistants.retrieve(made.id));
    await missing(way, (c) => c.beta.assistants.update(made.id, { name: 'x' }));
    await missing(way, (c) => c.beta.assistants.delete(made.id));

    const thread = await threads.create({ messages: [{ role: 'user', content: 'First' }], metadata: { c: 'd' } });
    assert.deepEqual((await threads.update(thread.id, { metadata: { c: 'e' } })).metadata, { c: 'e' });
    assert.deepEqual((await threads.retrieve(thread.id)).metadata, { c: 'e' });
    const message = await threads.messages.create(thread.id, { role: 'user', content: [{ type: 'text', text: 'Second' }] });
    assert.equal(textOf(await threads.messages.retrieve(message.id, { thread_id: thread.id })), 'Second');
    assert.deepEqual((await threads.messages.update(message.id, { thread_id: thread.id, metadata: { k: 'v' } })).metadata, { k: 'v' });
    assert.deepEqual((await all(threads.messages.list(thread.id, { order: 'asc', limit: 1 }))).map(textOf), ['First', 'Second']);
    await missing(way, (c) => c.beta.threads.messages.list(thread.id));
    await missing(way, (c) => c.beta.threads.messages.create(thread.id, { role: 'user', content: 'x' }));
    assert.equal((await threads.messages.delete(message.id, { thread_id: thread.id })).deleted, true);
    await missing(way, (c) => c.beta.threads.delete(thread.id));
    assert.equal((await threads.delete(thread.id)).deleted, true);
    await assert.rejects(threads.retrieve(thread.id), (err) => err.status === 404);
    assert.equal((await assistants.delete(second.id)).deleted, true);
    await assert.rejects(assistants.create({ model: 'gpt-4o-mini', name: 'n'.repeat(257) }), (err) => err.status === 400 && err.param === 'name');
  });

  test(`runs to their end, by being asked: ${way.name}`, async () => {
    const assistant = await assistants.create({ model: 'gpt-4o-mini' });
    const thread = await threads.create({ messages: [{ role: 'user', content: 'Hello' }] });
    const begun = await threads.runs.create(thread.id, { assistant_id: assistant.id });
    assert.deepEqual([begun.status, begun.usage], ['queued', null]);
    await assert.rejects(threads.messages.create(thread.id, { role: 'user', content: 'x' }), (err) => err.status === 400 && /active/.test(err.message));
    await missing(way, (c) => c.beta.threads.runs.retrieve(begun.id, { thread_id: thread.id }));
    const run = await threads.runs.poll(begun.id, { thread_id: thread.id });
    assert.equal(run.status, 'completed');
    assert.deepEqual(run.usage, { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 });
    assert.deepEqual((await threads.runs.update(run.id, { thread_id: thread.id, metadata: { k: 'v' } })).metadata, { k: 'v' });
    const [answer] = (await threads.messages.list(thread.id, { run_id: run.id })).data;
    assert.equal(textOf(answer), 'A threaded answer to Hello');
    const [step] = await all(threads.runs.steps.list(run.id, { thread_id: thread.id }));
    assert.equal(step.step_details.message_creation.message_id, answer.id);
    assert.equal((await threads.runs.steps.retrieve(step.id, { thread_id: thread.id, run_id: run.id })).status, 'completed');
    assert.deepEqual((await all(threads.runs.list(thread.id))).map((r) => r.id), [run.id]);
    await assert.rejects(threads.runs.cancel(run.id, { thread_id: thread.id }), (err) => err.status === 400 && /Cannot cancel/.test(err.message));
    const stopped = await threads.runs.create(thread.id, { assistant_id: assistant.id });
    assert.equal((await threads.runs.cancel(stopped.id, { thread_id: thread.id })).status, 'cancelling');
    assert.equal((await threads.runs.retrieve(stopped.id, { thread_id: thread.id })).status, 'cancelled');
  });

  test(`runs with tools, plain and streamed: ${way.name}`, async () => {
    const assistant = await assistants.create({ model: 'gpt-4o-mini', tools: [lookup] });
    const waiting = await threads.createAndRunPoll({ assistant_id: assistant.id, thread: { messages: [{ role: 'user', content: 'Look it up' }] } });
    assert.equal(waiting.status, 'requires_action');
    const [call] = waiting.required_action.submit_tool_outputs.tool_calls;
    assert.equal(call.function.name, 'look_up');
    await missing(way, (c) => c.beta.threads.runs.submitToolOutputs(waiting.id, { thread_id: waiting.thread_id, tool_outputs: [{ tool_call_id: call.id, output: 'x' }] }));
    await assert.rejects(threads.runs.submitToolOutputs(waiting.id, { thread_id: waiting.thread_id, tool_outputs: [] }), (err) => err.status === 400);
    const done = await threads.runs.submitToolOutputsAndPoll(waiting.id, { thread_id: waiting.thread_id, tool_outputs: [{ tool_call_id: call.id, output: 'it is 7' }] });
    assert.equal(done.status, 'completed');
    assert.equal(textOf((await threads.messages.list(done.thread_id)).data[0]), 'The tool says: it is 7');

    let stream = threads.createAndRunStream({ assistant_id: assistant.id, thread: { messages: [{ role: 'user', content: 'Again' }] } });
    let run = await stream.finalRun();
    assert.equal(run.status, 'requires_action');
    const id = run.required_action.submit_tool_outputs.tool_calls[0].id;
    stream = threads.runs.submitToolOutputsStream(run.id, { thread_id: run.thread_id, tool_outputs: [{ tool_call_id: id, output: 'it is 8' }] });
    assert.deepEqual((await stream.finalMessages()).map(textOf), ['The tool says: it is 8']);
    assert.equal((await stream.finalRun()).usage.completion_tokens, 6);
  });

  test(`streamed runs: ${way.name}`, async () => {
    const assistant = await assistants.create({ model: 'gpt-4o-mini' });
    const thread = await threads.create({ messages: [{ role: 'user', content: 'Hello' }] });
    const stream = threads.runs.stream(thread.id, { assistant_id: assistant.id });
    const names = [];
    let text = '';
    stream.on('event', (e) => names.push(e.event)).on('textDelta', (d) => { text += d.value; });
    const run = await stream.finalRun();
    assert.equal(run.status, 'completed');
    assert.equal(text, 'A threaded answer to Hello');
    assert.deepEqual((await stream.finalRunSteps()).map((s) => s.type), ['message_creation']);
    assert.equal(names[0], 'thread.run.created');
    assert.equal(names.filter((n) => n === 'thread.message.delta').length, 5);
    await threads.runs.retrieve(run.id, { thread_id: thread.id }); // what is read again is not booked again
    await missing(way, (c) => c.beta.threads.runs.create(thread.id, { assistant_id: assistant.id, stream: true }));
  });

  test(`each of these in the log, each run booked once: ${way.name}`, async () => {
    const records = await logged(way.made, way.workspace);
    assert.deepEqual(records.map((r) => r.req_units).filter(Boolean).sort((a, b) => a - b), [12, 12, 12, 13]);
    assert.ok(records.every((r) => r.is_proxy_call), 'they are passed through');
  });
}
