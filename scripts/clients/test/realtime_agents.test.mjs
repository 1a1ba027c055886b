// Realtime clients that repeat the model of a session in session.update, under the name by
// which they opened it: the whole update is accepted, with instructions and tools.
import test from 'node:test';
import assert from 'node:assert/strict';
import { OpenAIRealtimeWebSocket, RealtimeAgent, RealtimeSession, tool } from '@openai/agents-realtime';
import { createOpenAI } from '@ai-sdk/openai';
import { WebSocket } from 'ws';
import { gatewayKey, gatewayURL } from '../support.mjs';

const model = '@mock/gpt-realtime';
const socketURL = `${gatewayURL.replace(/^http/, 'ws')}/realtime?model=${encodeURIComponent(model)}`;

test('the Agents SDK configures its session', async () => {
  const hour = tool({ name: 'hour', description: 'The hour', parameters: { type: 'object', properties: {}, required: [], additionalProperties: true }, strict: false, execute: async () => '12' });
  const agent = new RealtimeAgent({ name: 'Guide', instructions: 'Be very brief.', tools: [hour] });
  const transport = new OpenAIRealtimeWebSocket({ url: socketURL, useInsecureApiKey: true });
  const session = new RealtimeSession(agent, { transport, model });
  const events = [];
  const seen = (type, check = () => true) => new Promise((resolve, reject) => {
    transport.on('*', (e) => { if (e.type === type && check(e)) resolve(e); });
    session.on('error', (e) => reject(new Error(JSON.stringify(e.error ?? e))));
  });
  transport.on('*', (e) => events.push(e.type));
  const updated = seen('session.updated', (e) => e.session.instructions === 'Be very brief.');
  const done = seen('response.done');
  await session.connect({ apiKey: gatewayKey, url: socketURL, model });
  await updated;
  session.sendMessage('Hello');
  assert.equal((await done).response.status, 'completed');
  assert.ok(!events.includes('error'), `${events}`);
  session.close();
});

test('the AI SDK configures its session', async () => {
  const provider = createOpenAI({ baseURL: gatewayURL, apiKey: gatewayKey });
  const realtime = provider.experimental_realtime(model);
  const { url, headers, protocols } = await realtime.getServerWebSocketConfig();
  const socket = new WebSocket(url, protocols, { headers });
  const updated = new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.on('message', (m) => {
      const e = JSON.parse(m.toString());
      if (e.type === 'error') reject(new Error(m.toString()));
      if (e.type === 'session.updated') resolve(e.session);
    });
  });
  await new Promise((resolve, reject) => { socket.on('open', resolve); socket.on('error', reject); });
  const tools = [{ type: 'function', name: 'hour', description: 'The hour', parameters: { type: 'object', properties: {} } }];
  const event = realtime.serializeClientEvent({ type: 'session-update', config: { instructions: 'Be very brief.', tools } });
  assert.match(JSON.stringify(event), /"model"/);
  socket.send(JSON.stringify(event));
  assert.equal((await updated).instructions, 'Be very brief.');
  socket.close();
});
