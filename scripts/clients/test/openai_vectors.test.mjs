import test from 'node:test';
import assert from 'node:assert/strict';
import { toFile } from 'openai';
import { ways, missing, logged, all } from '../workspaces.mjs';

for (const way of await ways('vectors')) {
  const { files, vectorStores, uploads } = way.client;
  const file = async (name, content) => files.create({ file: await toFile(Buffer.from(content), name), purpose: 'assistants' });

  test(`vector stores and their files: ${way.name}`, async () => {
    const store = await vectorStores.create({ name: 'animals', metadata: { a: 'b' }, expires_after: { anchor: 'last_active_at', days: 2 } });
    assert.deepEqual([store.status, store.file_counts.total], ['completed', 0]);
    assert.equal((await vectorStores.update(store.id, { name: 'beasts' })).name, 'beasts');
    const fox = await file('fox.txt', 'the quick red fox'), bin = await file('x.bin', '\0');
    const attached = await vectorStores.files.createAndPoll(store.id, { file_id: fox.id, attributes: { kind: 'fox' } });
    assert.equal(attached.status, 'completed');
    const failed = await vectorStores.files.createAndPoll(store.id, { file_id: bin.id });
    assert.deepEqual([failed.status, failed.last_error.code], ['failed', 'unsupported_file']);
    const counts = (await vectorStores.retrieve(store.id)).file_counts;
    assert.deepEqual([counts.completed, counts.failed, counts.total], [1, 1, 2]);
    assert.deepEqual((await all(vectorStores.files.list(store.id, { limit: 1 }))).map((f) => f.id), [bin.id, fox.id]);
    assert.deepEqual((await all(vectorStores.files.list(store.id, { filter: 'completed' }))).map((f) => f.id), [fox.id]);
    assert.deepEqual((await vectorStores.files.update(fox.id, { vector_store_id: store.id, attributes: { kind: 'red' } })).attributes, { kind: 'red' });
    const [part] = await all(vectorStores.files.content(fox.id, { vector_store_id: store.id }));
    assert.equal(part.text, 'the quick red fox');
    const found = await all(vectorStores.search(store.id, { query: 'a red fox', filters: { type: 'eq', key: 'kind', value: 'red' } }));
    assert.deepEqual(found.map((h) => h.file_id), [fox.id]);
    assert.ok(found[0].score > 0.5);
    for (const ask of [
      (c) => c.vectorStores.retrieve(store.id), (c) => c.vectorStores.files.list(store.id), (c) => c.vectorStores.search(store.id, { query: 'fox' }),
      (c) => c.vectorStores.files.content(fox.id, { vector_store_id: store.id }), (c) => c.vectorStores.create({ file_ids: [fox.id] }), (c) => c.vectorStores.delete(store.id),
    ]) await missing(way, ask);
    assert.ok((await all(vectorStores.list())).some((s) => s.id === store.id));
    assert.equal((await vectorStores.files.delete(bin.id, { vector_store_id: store.id })).deleted, true);
    assert.equal((await vectorStores.delete(store.id)).deleted, true);
    await assert.rejects(vectorStores.retrieve(store.id), (err) => err.status === 404);
    await assert.rejects(vectorStores.create({ expires_after: { anchor: 'last_active_at', days: 366 } }), (err) => err.status === 400 && err.param === 'expires_after.days');
  });

  test(`batches of files: ${way.name}`, async () => {
    const store = await vectorStores.create({});
    const ids = [(await file('a.txt', 'one')).id, (await file('b.txt', 'two')).id];
    const done = await vectorStores.fileBatches.createAndPoll(store.id, { file_ids: ids });
    assert.deepEqual([done.status, done.file_counts.completed], ['completed', 2]);
    assert.equal((await all(vectorStores.fileBatches.listFiles(done.id, { vector_store_id: store.id }))).length, 2);
    await missing(way, (c) => c.vectorStores.fileBatches.retrieve(done.id, { vector_store_id: store.id }));
    const uploaded = await vectorStores.fileBatches.uploadAndPoll(store.id, { files: [await toFile(Buffer.from('three'), 'c.txt')] });
    assert.equal(uploaded.file_counts.completed, 1);
    const stopped = await vectorStores.fileBatches.create(store.id, { file_ids: ids });
    const after = await vectorStores.fileBatches.cancel(stopped.id, { vector_store_id: store.id });
    assert.deepEqual([after.status, after.file_counts.cancelled], ['cancelled', 2]);
    assert.equal((await vectorStores.retrieve(store.id)).file_counts.total, 3);
  });

  test(`uploads in parts: ${way.name}`, async () => {
    const content = Buffer.from(Array.from({ length: 3000 }, (_, i) => (i * 31) % 256));
    const upload = await uploads.create({ bytes: content.length, filename: 'all.pdf', mime_type: 'application/pdf', purpose: 'user_data' });
    assert.equal(upload.status, 'pending');
    const parts = [];
    for (const at of [0, 1000, 2000]) parts.push(await uploads.parts.create(upload.id, { data: await toFile(content.subarray(at, at + 1000), 'part') }));
    await missing(way, async (c) => c.uploads.parts.create(upload.id, { data: await toFile(Buffer.from('x'), 'part') }));
    await missing(way, (c) => c.uploads.complete(upload.id, { part_ids: [parts[0].id] }));
    await missing(way, (c) => c.uploads.cancel(upload.id));
    await assert.rejects(uploads.complete(upload.id, { part_ids: [parts[0].id] }), (err) => err.status === 400 && /bytes/.test(err.message));
    const done = await uploads.complete(upload.id, { part_ids: parts.map((p) => p.id) });
    assert.deepEqual([done.status, done.file.bytes], ['completed', 3000]);
    assert.ok(Buffer.from(await (await files.content(done.file.id)).arrayBuffer()).equals(content));
    await missing(way, (c) => c.files.retrieve(done.file.id));
    const dropped = await uploads.create({ bytes: 1, filename: 'x.pdf', mime_type: 'application/pdf', purpose: 'user_data' });
    assert.equal((await uploads.cancel(dropped.id)).status, 'cancelled');
    await assert.rejects(uploads.complete(dropped.id, { part_ids: ['part_x'] }), (err) => err.status === 400);
  });

  test(`each of these in the log: ${way.name}`, async () => {
    await logged(way.made, way.workspace);
    if (way.stranger) await logged(way.stranger.made, way.stranger.workspace);
  });
}
