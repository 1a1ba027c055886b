import test from 'node:test';
import assert from 'node:assert/strict';
import { toFile } from 'openai';
import { ways, missing, logged, all } from '../workspaces.mjs';

for (const way of await ways('stored')) {
  const { chat, responses, conversations, containers, evals, files, fineTuning } = way.client;

  test(`stored chats: ${way.name}`, async () => {
    const ask = (text, more) => chat.completions.create({ model: 'gpt-4o-mini', store: true, messages: [{ role: 'user', content: text }], metadata: { set: way.made.trace.slice(0, 8) }, ...more });
    const first = await ask('mock: say=one');
    let id;
    for await (const chunk of await ask('mock: say=two', { stream: true })) id = chunk.id;
    assert.equal((await chat.completions.retrieve(first.id)).choices[0].message.content, 'one');
    const mine = await all(chat.completions.list({ limit: 1, metadata: { set: way.made.trace.slice(0, 8) } }));
    assert.deepEqual(mine.map((c) => c.id), [first.id, id]);
    assert.deepEqual((await chat.completions.update(first.id, { metadata: { k: 'v' } })).metadata, { k: 'v' });
    assert.deepEqual((await all(chat.completions.messages.list(first.id))).map((m) => m.content), ['mock: say=one']);
    for (const other of [
      (c) => c.chat.completions.retrieve(id), (c) => c.chat.completions.update(id, { metadata: { k: 'v' } }),
      (c) => c.chat.completions.messages.list(first.id), (c) => c.chat.completions.delete(first.id),
    ]) await missing(way, other);
    if (way.stranger) assert.deepEqual(await all(way.stranger.client.chat.completions.list()), []);
    assert.equal((await chat.completions.delete(first.id)).deleted, true);
    await assert.rejects(chat.completions.retrieve(first.id), (err) => err.status === 404);
    const passing = await ask('mock: say=three', { store: false });
    await assert.rejects(chat.completions.retrieve(passing.id), (err) => err.status === 404);
  });

  test(`responses and their conversations: ${way.name}`, async () => {
    const first = await responses.create({ model: 'gpt-4o-mini', input: 'mock: say=one' });
    assert.equal((await responses.retrieve(first.id)).output_text, 'one');
    const next = await responses.create({ model: 'gpt-4o-mini', input: 'mock: say=two', previous_response_id: first.id });
    assert.equal(next.previous_response_id, first.id);
    assert.equal((await all(responses.inputItems.list(first.id)))[0].content[0].text, 'mock: say=one');
    await assert.rejects(responses.cancel(first.id), (err) => err.status === 400 && /synchronous/.test(err.message));
    assert.ok((await responses.inputTokens.count({ model: 'gpt-4o-mini', input: 'Hello' })).input_tokens > 0);
    for (const other of [
      (c) => c.responses.retrieve(first.id), (c) => c.responses.inputItems.list(first.id), (c) => c.responses.cancel(first.id), (c) => c.responses.delete(first.id),
      (c) => c.responses.create({ model: 'gpt-4o-mini', input: 'x', previous_response_id: first.id }),
    ]) await missing(way, other);
    const gone = await responses.delete(first.id);
    assert.ok(gone === undefined || gone.deleted);
    await assert.rejects(responses.retrieve(first.id), (err) => err.status === 404);

    const talk = await conversations.create({ items: [{ type: 'message', role: 'user', content: 'Before' }], metadata: { a: 'b' } });
    await responses.create({ model: 'gpt-4o-mini', input: 'mock: say=three', conversation: talk.id });
    const items = await all(conversations.items.list(talk.id, { order: 'asc', limit: 2 }));
    assert.deepEqual(items.map((i) => i.content[0].text), ['Before', 'mock: say=three', 'three']);
    await conversations.items.create(talk.id, { items: [{ type: 'message', role: 'user', content: 'After' }] });
    assert.equal((await conversations.items.retrieve(items[2].id, { conversation_id: talk.id })).role, 'assistant');
    assert.equal((await conversations.items.delete(items[0].id, { conversation_id: talk.id })).id, talk.id);
    assert.deepEqual((await conversations.update(talk.id, { metadata: { c: 'd' } })).metadata, { c: 'd' });
    assert.equal((await conversations.retrieve(talk.id)).object, 'conversation');
    for (const other of [
      (c) => c.conversations.retrieve(talk.id), (c) => c.conversations.items.list(talk.id), (c) => c.conversations.delete(talk.id),
      (c) => c.responses.create({ model: 'gpt-4o-mini', input: 'x', conversation: talk.id }),
      (c) => c.responses.create({ model: 'gpt-4o-mini', input: 'x', conversation: { id: talk.id } }),
    ]) await missing(way, other);
    assert.equal((await conversations.delete(talk.id)).deleted, true);
  });

  test(`containers and evaluations pass as they are: ${way.name}`, async () => {
    const file = await files.create({ file: await toFile(Buffer.from('{"item":{}}\n'), 'rows.jsonl'), purpose: 'evals' });
    const box = await containers.create({ name: 'box', file_ids: [file.id] });
    const inside = await containers.files.create(box.id, { file: await toFile(Buffer.from('inside'), 'in.txt') });
    assert.equal(await (await containers.files.content.retrieve(inside.id, { container_id: box.id })).text(), 'inside');
    assert.equal((await all(containers.files.list(box.id))).length, 2);
    assert.ok((await all(containers.list())).some((c) => c.id === box.id));
    await missing(way, (c) => c.containers.retrieve(box.id));
    await missing(way, (c) => c.containers.create({ name: 'x', file_ids: [file.id] }));
    await containers.files.delete(inside.id, { container_id: box.id });
    await containers.delete(box.id);

    const made = await evals.create({ name: 'e', data_source_config: { type: 'custom', item_schema: { type: 'object' } }, testing_criteria: [] });
    const source = (id) => ({ type: 'jsonl', source: { type: 'file_id', id } });
    let run = await evals.runs.create(made.id, { name: 'r', data_source: source(file.id) });
    for (let i = 0; i < 3 && run.status !== 'completed'; i++) run = await evals.runs.retrieve(run.id, { eval_id: made.id });
    assert.equal(run.result_counts.passed, 1);
    assert.deepEqual(await all(evals.runs.outputItems.list(run.id, { eval_id: made.id })), []);
    await missing(way, (c) => c.evals.retrieve(made.id));
    if (way.stranger) {
      const theirs = await way.stranger.client.evals.create({ data_source_config: { type: 'custom', item_schema: { type: 'object' } }, testing_criteria: [] });
      await missing(way, (c) => c.evals.runs.create(theirs.id, { data_source: source(file.id) }));
    }
    assert.equal((await evals.update(made.id, { name: 'f' })).name, 'f');
    assert.equal((await evals.delete(made.id)).deleted, true);
  });

  test(`events and checkpoints of fine-tuning: ${way.name}`, async () => {
    const file = await files.create({ file: await toFile(Buffer.from('{"messages":[]}\n'), 'train.jsonl'), purpose: 'fine-tune' });
    let job = await fineTuning.jobs.create({ model: 'gpt-4o-mini', training_file: file.id });
    await missing(way, (c) => c.fineTuning.jobs.listEvents(job.id));
    await missing(way, (c) => c.fineTuning.jobs.checkpoints.list(job.id));
    await missing(way, (c) => c.fineTuning.jobs.pause(job.id));
    assert.equal((await fineTuning.jobs.pause(job.id)).status, 'paused');
    assert.notEqual((await fineTuning.jobs.resume(job.id)).status, 'paused');
    for (let i = 0; i < 4 && job.status !== 'succeeded'; i++) job = await fineTuning.jobs.retrieve(job.id);
    assert.equal(job.status, 'succeeded');
    assert.equal((await all(fineTuning.jobs.listEvents(job.id, { limit: 1 }))).at(-1).message, 'Job created');
    const points = await all(fineTuning.jobs.checkpoints.list(job.id, { limit: 1 }));
    assert.deepEqual(points.map((p) => p.step_number), [2, 1]);
    assert.equal(points[0].fine_tuning_job_id, job.id);
    await assert.rejects(fineTuning.jobs.cancel(job.id), (err) => err.status === 400);
  });

  test(`each of these in the log, none booked by being read: ${way.name}`, async () => {
    const records = await logged(way.made, way.workspace);
    const paid = records.filter((r) => r.cost > 0);
    for (const r of paid) assert.ok(r.request_method === 'POST' && /^\/v1\/(chat\/completions|responses)$/.test(r.request_url), `${r.request_method} ${r.request_url} cost ${r.cost}`);
    assert.equal(paid.length, 6);
  });
}
