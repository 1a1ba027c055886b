import test from 'node:test';
import assert from 'node:assert/strict';
import { toFile } from 'openai';
import { openai } from '../support.mjs';

const client = openai();

const row = (id, text) => JSON.stringify({
  custom_id: id, method: 'POST', url: '/v1/chat/completions',
  body: { model: 'gpt-4o-mini', messages: [{ role: 'user', content: text }] },
});

test('moderations', async () => {
  const answer = await client.moderations.create({ input: ['Hello', 'I kill time'] });
  assert.deepEqual(answer.results.map((r) => r.flagged), [false, true]);
  assert.equal(Object.keys(answer.results[0].category_scores).length, 11);
});

test('images: generations, edits and variations', async () => {
  const made = await client.images.generate({ model: 'dall-e-3', prompt: 'A red fox', size: '1024x1024' });
  assert.equal(made.data.length, 1);
  assert.ok(made.data[0].url);
  const image = () => toFile(Buffer.from('\x89PNG fox'), 'fox.png', { type: 'image/png' });
  const edited = await client.images.edit({ image: await image(), prompt: 'A hat', model: 'dall-e-2', n: 2, response_format: 'b64_json' });
  assert.equal(edited.data.length, 2);
  assert.ok(Buffer.from(edited.data[1].b64_json, 'base64').length > 8);
  const varied = await client.images.createVariation({ image: await image(), n: 1 });
  assert.equal(varied.data.length, 1);
});

test('speech, plain and as events', async () => {
  const spoken = await client.audio.speech.create({ model: 'tts-1', input: 'Hello', voice: 'alloy' });
  assert.equal(spoken.headers.get('content-type'), 'audio/mpeg');
  const bytes = Buffer.from(await spoken.arrayBuffer());
  assert.equal(bytes.length, 20);
  bytes.forEach((b, i) => assert.equal(b, (i * 7) % 256));
  const events = await client.audio.speech.create({ model: 'gpt-4o-mini-tts', input: 'Hello', voice: 'alloy', stream_format: 'sse' });
  assert.match(await events.text(), /speech\.audio\.done/);
});

test('transcriptions and translations', async () => {
  const file = () => toFile(Buffer.from('sound'), 'a.mp3');
  const heard = await client.audio.transcriptions.create({ file: await file(), model: 'whisper-1' });
  assert.equal(heard.text, 'The sound has 5 bytes.');
  const verbose = await client.audio.transcriptions.create({ file: await file(), model: 'whisper-1', response_format: 'verbose_json', timestamp_granularities: ['word'] });
  assert.equal(verbose.duration, 1);
  assert.equal(await client.audio.transcriptions.create({ file: await file(), model: 'whisper-1', response_format: 'text' }), 'The sound has 5 bytes.\n');
  let text = '';
  for await (const event of await client.audio.transcriptions.create({ file: await file(), model: 'gpt-4o-transcribe', stream: true })) {
    if (event.type === 'transcript.text.delta') text += event.delta;
  }
  assert.equal(text, 'The sound has 5 bytes.');
  const translated = await client.audio.translations.create({ file: await file(), model: 'whisper-1' });
  assert.equal(translated.text, 'The sound has 5 bytes.');
  const addressed = await openai('').audio.transcriptions.create({ file: await file(), model: '@mock/whisper-1' });
  assert.equal(addressed.text, 'The sound has 5 bytes.');
});

test('files: upload, list, read, delete', async () => {
  const content = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 31) % 256));
  const file = await client.files.create({ file: await toFile(content, 'all.bin'), purpose: 'user_data' });
  assert.equal(file.object, 'file');
  assert.equal(file.bytes, content.length);
  const ids = [];
  for await (const f of client.files.list({ purpose: 'user_data', limit: 1 })) ids.push(f.id);
  assert.ok(ids.includes(file.id));
  const back = await client.files.content(file.id);
  assert.ok(Buffer.from(await back.arrayBuffer()).equals(content));
  assert.equal((await client.files.delete(file.id)).deleted, true);
  await assert.rejects(client.files.retrieve(file.id), (err) => err.status === 404);
});

test('a batch, from its rows to its output', async () => {
  const file = await client.files.create({ file: await toFile(Buffer.from(`${row('one', 'Hello')}\n${row('two', 'Again')}\n`), 'rows.jsonl'), purpose: 'batch' });
  let batch = await client.batches.create({ input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h', metadata: { a: 'b' } });
  assert.equal(batch.status, 'validating');
  for (let i = 0; i < 3 && batch.status !== 'completed'; i++) batch = await client.batches.retrieve(batch.id);
  assert.equal(batch.request_counts.completed, 2);
  const rows = (await (await client.files.content(batch.output_file_id)).text()).trim().split('\n').map((l) => JSON.parse(l));
  assert.deepEqual(rows.map((r) => r.custom_id), ['one', 'two']);
  const output = await client.get(`/batches/${batch.id}/output`, { __binaryResponse: true });
  assert.equal((await output.text()).trim().split('\n').length, 2);
  const stopped = await client.batches.create({ input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' });
  assert.equal((await client.batches.cancel(stopped.id)).status, 'cancelling');
  const all = [];
  for await (const b of client.batches.list({ limit: 1 })) all.push(b.id);
  assert.ok(all.includes(batch.id) && all.includes(stopped.id));
});

test('fine-tuning jobs', async () => {
  const file = await client.files.create({ file: await toFile(Buffer.from('{"messages":[]}\n'), 'train.jsonl'), purpose: 'fine-tune' });
  const job = await client.fineTuning.jobs.create({ model: 'gpt-4o-mini', training_file: file.id });
  assert.equal((await client.fineTuning.jobs.retrieve(job.id)).status, 'queued');
  for await (const event of client.fineTuning.jobs.listEvents(job.id)) assert.equal(event.object, 'fine_tuning.job.event');
  for await (const c of client.fineTuning.jobs.checkpoints.list(job.id)) assert.fail(c.id);
  assert.equal((await client.fineTuning.jobs.cancel(job.id)).status, 'cancelled');
});

test('bounds are refused with the field', async () => {
  await assert.rejects(client.audio.speech.create({ model: 'tts-1', input: 'x', voice: 'alloy', speed: 9 }), (err) => err.status === 400 && err.param === 'speed');
  await assert.rejects(client.files.create({ file: await toFile(Buffer.from('x'), 'x'), purpose: '' }), (err) => err.status === 400 && err.param === 'purpose');
});

test('a batch that the gateway runs itself', async () => {
  const own = openai('gateway');
  const file = await own.files.create({ file: await toFile(Buffer.from(`${row('one', 'mock: say=Hello')}\n${row('two', 'mock: status=400')}\n`), 'rows.jsonl'), purpose: 'batch' });
  assert.match(file.id, /^gw_file_/);
  const made = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: 'immediate', metadata: { a: 'b' }, gateway_options: { 'x-gateway-virtual-key': 'mock' } };
  let batch = await own.batches.create(made);
  assert.equal(batch.status, 'validating');
  const slow = await own.files.create({ file: await toFile(Buffer.from(`${row('slow', 'mock: delay=3s')}\n`), 'rows.jsonl'), purpose: 'batch' });
  const stopped = await own.batches.create({ ...made, input_file_id: slow.id });
  assert.equal((await own.batches.cancel(stopped.id)).status, 'cancelling');
  for (let i = 0; i < 600 && batch.status !== 'completed'; i++) {
    await new Promise((done) => setTimeout(done, 100));
    batch = await own.batches.retrieve(batch.id);
  }
  assert.deepEqual(batch.request_counts, { total: 2, completed: 1, failed: 1 });
  const rows = async (id) => (await (await own.files.content(id)).text()).trim().split('\n').map((l) => JSON.parse(l));
  const [good] = await rows(batch.output_file_id);
  assert.equal(good.custom_id, 'one');
  assert.equal(good.response.body.choices[0].message.content, 'Hello');
  const [bad] = await rows(batch.error_file_id);
  assert.equal(bad.response.status_code, 400);
  const all = [];
  for await (const b of own.batches.list({ limit: 1 })) all.push(b.id);
  assert.ok(all.includes(batch.id) && all.includes(stopped.id));
  await assert.rejects(own.files.create({ file: await toFile(Buffer.from('x\n'), 'x.jsonl'), purpose: 'batch' }), (err) => err.status === 400 && err.param === 'file' && /line 1/.test(err.message));
});
