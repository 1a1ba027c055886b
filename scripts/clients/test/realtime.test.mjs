// The sockets of the OpenAI SDK: realtime sessions from a server and as a browser opens
// them, and responses over a WebSocket. Realtime classes insist on TLS.
import test from 'node:test';
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { OpenAIRealtimeWebSocket } from 'openai/realtime/websocket';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { LiveWS } from 'openai/resources/live/ws';
import { WebSocket } from 'ws';
import { gatewayKey, gatewayURL, openai } from '../support.mjs';

const secure = process.env.GATEWAY_TLS_URL;
const client = (options = {}) => openai('', { baseURL: secure, ...options });
const model = '@mock/gpt-realtime';

// heard collects the events of a session up to one of a type.
function heard(rt, type) {
  const events = [];
  return new Promise((resolve, reject) => {
    rt.on('event', (e) => {
      events.push(e);
      if (e.type === type) resolve(events);
    });
    rt.on('error', reject);
  });
}

const closed = (socket) => new Promise((resolve) => socket.addEventListener('close', resolve));

const words = (text) => ({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] } });

test('a server speaks in a session', async () => {
  const rt = new OpenAIRealtimeWS({ model }, client());
  const all = heard(rt, 'response.done');
  rt.socket.on('open', () => {
    rt.send({ type: 'session.update', session: { type: 'realtime', instructions: 'Be brief.' } });
    rt.send(words('Hello'));
    rt.send({ type: 'response.create' });
  });
  const events = await all;
  const kinds = events.map((e) => e.type);
  for (const kind of ['session.created', 'session.updated', 'conversation.item.added', 'response.created', 'response.output_text.delta', 'response.done']) {
    assert.ok(kinds.includes(kind), `${kind} in ${kinds}`);
  }
  const { usage } = events.at(-1).response;
  assert.ok(usage.input_tokens > 0 && usage.output_tokens > 0, JSON.stringify(usage));
  const end = closed(rt.socket);
  rt.close();
  assert.equal((await end).code, 1000);
});

test('a browser opens a session with a client secret', async () => {
  const { value, expires_at: until, session } = await client().realtime.clientSecrets.create({
    expires_after: { anchor: 'created_at', seconds: 60 },
    session: { type: 'realtime', model, instructions: 'Be very brief.' },
  });
  assert.match(value, /^ek_/);
  assert.ok(until * 1000 > Date.now() && session.type === 'realtime' && session.model === model);
  globalThis.WebSocket = WebSocket; // older runtimes have none of their own
  const rt = new OpenAIRealtimeWebSocket({ model }, new OpenAI({ baseURL: secure, apiKey: value }));
  const all = heard(rt, 'response.done');
  rt.socket.addEventListener('open', () => {
    rt.send(words('Hello'));
    rt.send({ type: 'response.create' });
  });
  const events = await all;
  assert.equal(events.find((e) => e.type === 'session.updated').session.instructions, 'Be very brief.');
  assert.equal(events.at(-1).response.status, 'completed');
  assert.equal(rt.socket.protocol, 'realtime');
  rt.close();
  await assert.rejects(client({ apiKey: value }).chat.completions.create({ model: '@mock/gpt-4o-mini', messages: [{ role: 'user', content: 'Hello' }] }), (e) => e.status === 401);
});

test('a session that transcribes', async () => {
  const { value } = await client({ defaultHeaders: { 'x-gateway-provider': '@mock' } }).realtime.clientSecrets.create({
    session: { type: 'transcription', audio: { input: { transcription: { model: 'whisper-1' } } } },
  });
  const rt = new OpenAIRealtimeWS({ intent: 'transcription' }, client({ apiKey: value }));
  const all = heard(rt, 'conversation.item.input_audio_transcription.completed');
  rt.socket.on('open', () => {
    rt.send({ type: 'input_audio_buffer.append', audio: 'AAAA'.repeat(12000) });
    rt.send({ type: 'input_audio_buffer.commit' });
  });
  const last = (await all).find((e) => e.type === 'conversation.item.input_audio_transcription.completed');
  assert.ok(last.transcript && last.usage.seconds > 0, JSON.stringify(last));
  rt.close();
});

test('what is refused is told', async () => {
  const refused = (props, options) => new Promise((resolve) => {
    const rt = new OpenAIRealtimeWS(props, client(options));
    rt.on('error', (e) => resolve(e.message));
  });
  assert.match(await refused({ model }, { apiKey: 'nobody' }), /401/);
  assert.match(await refused({ model: '@mock/nothing' }), /404/);
  assert.match(await refused({ callID: 'rtc_1' }), /400/);
});

// made sends a request and gives the events up to its end.
function made(ws, request) {
  const events = [];
  return new Promise((resolve) => {
    const take = (e) => {
      events.push(e);
      if (!/^(response\.(completed|incomplete|failed)|error)$/.test(e.type)) return;
      ws.off('event', take);
      resolve(events);
    };
    ws.on('event', take);
    ws.send({ type: 'response.create', max_output_tokens: 50, ...request });
  });
}

test('responses over a WebSocket', async () => {
  const ws = new ResponsesWS(openai(''));
  ws.on('error', () => {}); // errors are events, too
  const first = (await made(ws, { model: '@mock/gpt-4o-mini', input: 'Hello', store: false })).at(-1).response;
  assert.equal(first.status, 'completed');
  const second = await made(ws, { model: '@mock/gpt-4o-mini', input: 'And again', previous_response_id: first.id, store: false });
  assert.ok(second.some((e) => e.type === 'response.output_text.delta') && second.at(-1).response.status === 'completed');
  const claude = await made(ws, { model: '@mock-anthropic/claude-sonnet-4-5', input: 'Hello', previous_response_id: second.at(-1).response.id });
  assert.equal(claude.at(-1).response.status, 'completed');
  const bad = (await made(ws, { model: '@mock/gpt-4o-mini', input: 'x', temperature: 7 })).at(-1);
  assert.ok(bad.type === 'error' && bad.status === 400, JSON.stringify(bad));
  const laned = await made(ws, { model: '@mock/gpt-4o-mini', input: 'Hello', stream_id: 'a' });
  assert.ok(laned.every((e) => e.stream_id === 'a'));
  ws.close();
});

// plain opens a session with ws alone.
function plain(path, options) {
  const socket = new WebSocket(gatewayURL.replace(/^http/, 'ws') + path, options);
  const messages = [];
  socket.on('message', (m) => messages.push(JSON.parse(m.toString())));
  return { socket, messages, open: new Promise((resolve, reject) => { socket.on('open', resolve); socket.on('error', reject); }), end: new Promise((resolve) => socket.on('close', (code) => resolve(code))) };
}

test('ws: pieces, compression that is offered, and close codes', async () => {
  const headers = { authorization: `Bearer ${gatewayKey}` };
  const s = plain('/realtime?model=@mock/gpt-realtime', { headers, perMessageDeflate: true });
  await s.open;
  const event = JSON.stringify(words('x'.repeat(300_000)));
  for (let i = 0; i < event.length; i += 50_000) s.socket.send(event.slice(i, i + 50_000), { fin: i + 50_000 >= event.length });
  s.socket.send('{"type":"response.create"}');
  while (!s.messages.some((m) => m.type === 'response.done')) await new Promise((resolve) => s.socket.once('message', resolve));
  s.socket.close(4001, 'mine');
  assert.equal(await s.end, 4001);

  const big = plain('/responses', { headers });
  await big.open;
  big.socket.send('x'.repeat(17 << 20));
  assert.equal(await big.end, 1009);
});

test('a Live session', async () => {
  const live = new LiveWS(openai(''));
  const events = [];
  const end = new Promise((resolve, reject) => {
    live.on('event', (e) => {
      events.push(e);
      if (e.type === 'session.started') {
        live.send({ type: 'session.input_audio.append', audio: 'AAAA'.repeat(24_000) });
        live.send({ type: 'session.close' });
      }
    });
    live.on('close', (code) => resolve(code));
    live.on('error', reject);
  });
  live.send({ type: 'session.start', session: { model: '@mock/gpt-live-1', instructions: 'Be brief.' } }); // it waits until the socket is open
  assert.equal(await end, 1000);
  assert.deepEqual(events.map((e) => e.type), ['session.started', 'session.usage.updated', 'session.closed']);
  assert.equal(events[0].session.model, 'gpt-live-1');
  assert.equal(events[2].usage.seconds, 1.5);
});
