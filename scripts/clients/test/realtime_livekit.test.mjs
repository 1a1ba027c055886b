// LiveKit's agents plugin opens a realtime session under a name of the gateway, repeats that name
// in session.update with its instructions and tools, and reads a response.
import test from 'node:test';
import assert from 'node:assert/strict';
import { initializeLogger, llm } from '@livekit/agents';
import { realtime } from '@livekit/agents-plugin-openai';
import { gatewayKey, gatewayURL, weather } from '../support.mjs';

initializeLogger({ pretty: false, level: 'silent' });

const forecast = llm.tool({ ...weather, execute: async () => 'sunny' });

// open starts a session and returns it with what the server sent.
function open(model, options = {}) {
  const session = new realtime.RealtimeModel({ model, apiKey: gatewayKey, baseURL: gatewayURL, ...options }).session();
  const events = [];
  session.on('openai_server_event_received', (e) => events.push(e));
  const seen = (what, check) => new Promise((resolve, reject) => {
    const from = setTimeout(() => reject(new Error(`no ${what}: ${JSON.stringify(events).slice(0, 2000)}`)), 20_000);
    const poll = setInterval(() => {
      const found = events.find(check);
      if (!found) return;
      clearTimeout(from);
      clearInterval(poll);
      resolve(found);
    }, 5);
  });
  return { session, events, seen };
}

test('the plugin configures its session', async () => {
  const { session, events, seen } = open('@mock/gpt-realtime', { modalities: ['text'] });
  await session.updateInstructions('Be very brief.');
  await session.updateTools(new llm.ToolContext([forecast]));
  const updated = await seen('session with instructions and tools', (e) => e.type === 'session.updated' && e.session.tools?.length === 1);
  assert.equal(updated.session.instructions, 'Be very brief.');
  assert.equal(updated.session.tools[0].name, 'get_weather');
  const context = new llm.ChatContext();
  context.addMessage({ role: 'user', content: 'Hello say=Fine_weather' });
  await session.updateChatCtx(context);
  const generation = await session.generateReply();
  let text = '';
  for await (const message of generation.messageStream) for await (const part of message.textStream) text += part;
  assert.equal(text, 'Fine weather');
  const done = await seen('response', (e) => e.type === 'response.done');
  assert.equal(done.response.status, 'completed');
  assert.deepEqual(events.filter((e) => e.type === 'error'), []);
  await session.close();
});
