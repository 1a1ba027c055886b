// Google's own client for Gemini, pointed at the gateway: its requests pass
// through with the saved key in place of the client's own, which is worth nothing.
import test from 'node:test';
import assert from 'node:assert/strict';
import { GoogleGenAI, Type, FunctionCallingConfigMode, Modality } from '@google/genai';
import { gatewayURL, gatewayKey, openai } from '../support.mjs';

async function call(method, path, key, body, headers = {}) {
  const got = await fetch(gatewayURL + path, { method, headers: { 'x-gateway-api-key': key, 'content-type': 'application/json', ...headers }, body: body && JSON.stringify(body) });
  const text = await got.text();
  assert.equal(got.status, 200, `${method} ${path}: ${text}`);
  return JSON.parse(text);
}

const saved = (async () => {
  const { host } = await call('GET', '/proxy/echo/x', gatewayKey, undefined, { 'x-gateway-provider': '@mock' });
  const admin = process.env.GATEWAY_ADMIN_KEY;
  await call('POST', '/integrations', admin, {
    name: 'Gemini of the client', slug: 'geminiclient', ai_provider_id: 'google', key: 'mock-google', configurations: { custom_host: `http://${host}` },
  });
  await call('PUT', '/integrations/geminiclient/workspaces', admin, { workspaces: [], global_workspace_access: { enabled: true }, override_existing_workspace_access: true });
  return '@geminiclient';
})();

async function gemini() {
  return new GoogleGenAI({ apiKey: 'nothing', httpOptions: { baseUrl: gatewayURL, headers: { 'x-gateway-api-key': gatewayKey, 'x-gateway-provider': await saved } } });
}

const model = 'gemini-2.5-flash';
const now = { name: 'clock_now', description: 'The time', parameters: { type: Type.OBJECT, properties: { zone: { type: Type.STRING } } } };

test('generateContent', async () => {
  const answer = await (await gemini()).models.generateContent({
    model, contents: 'mock: say=Hello from the mock', config: { systemInstruction: 'Be brief.', temperature: 0.5, maxOutputTokens: 100, thinkingConfig: { thinkingBudget: 64, includeThoughts: true } },
  });
  assert.equal(answer.text, 'Hello from the mock');
  assert.equal(answer.candidates[0].finishReason, 'STOP');
  assert.equal(answer.usageMetadata.candidatesTokenCount, 4);
  assert.ok(answer.usageMetadata.thoughtsTokenCount > 0);
});

test('generateContentStream', async () => {
  let text = '', finish, usage;
  for await (const chunk of await (await gemini()).models.generateContentStream({ model, contents: 'mock: split-utf8' })) {
    text += chunk.text ?? '';
    finish ??= chunk.candidates?.[0]?.finishReason;
    usage = chunk.usageMetadata ?? usage;
  }
  assert.match(text, /東京/);
  assert.equal(finish, 'STOP');
  assert.ok(usage.totalTokenCount > usage.promptTokenCount);
});

test('a chat with a tool keeps its signatures', async () => {
  const chat = (await gemini()).chats.create({ model: 'gemini-3-pro-preview', config: { tools: [{ functionDeclarations: [now] }], toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.AUTO } } } });
  const asked = await chat.sendMessage({ message: 'clock_now, please' });
  const [called] = asked.functionCalls;
  assert.equal(called.name, 'clock_now');
  const answer = await chat.sendMessage({ message: { functionResponse: { id: called.id, name: called.name, response: { output: 'noon' } } } });
  assert.match(answer.text, /noon/);
});

test('structured output', async () => {
  const answer = await (await gemini()).models.generateContent({
    model, contents: 'Hi', config: { responseMimeType: 'application/json', responseSchema: { type: Type.OBJECT, properties: { n: { type: Type.INTEGER } }, required: ['n'] } },
  });
  assert.equal(typeof JSON.parse(answer.text).n, 'number');
});

test('countTokens, embedContent and the list of models', async () => {
  const client = await gemini();
  assert.ok((await client.models.countTokens({ model, contents: 'many words' })).totalTokens > 0);
  const { embeddings } = await client.models.embedContent({ model: 'gemini-embedding-001', contents: ['a', 'b'], config: { outputDimensionality: 8 } });
  assert.deepEqual(embeddings.map((e) => e.values.length), [8, 8]);
  const names = [];
  for await (const m of await client.models.list()) names.push(m.name);
  assert.ok(names.includes('models/gemini-2.5-flash'));
});

test('errors keep their status and words', async () => {
  await assert.rejects((await gemini()).models.generateContent({ model, contents: 'mock: status=429 retry-after=2' }), (e) => e.status === 429 && /RESOURCE_EXHAUSTED/.test(e.message));
});

test('the same provider by the OpenAI client', async () => {
  const answer = await openai(await saved).chat.completions.create({ model, messages: [{ role: 'user', content: 'mock: say=the same' }] });
  assert.equal(answer.choices[0].message.content, 'the same');
});

test('a Live session', async () => {
  const messages = [];
  let turn;
  const done = new Promise((resolve, reject) => {
    turn = { onmessage: (m) => { messages.push(m); if (m.serverContent?.turnComplete) resolve(); }, onerror: reject, onclose: (e) => reject(new Error(`closed: ${e.code} ${e.reason}`)) };
  });
  const session = await (await gemini()).live.connect({ model, config: { responseModalities: [Modality.TEXT], maxOutputTokens: 100 }, callbacks: turn });
  session.sendClientContent({ turns: [{ role: 'user', parts: [{ text: 'say=Hello_there' }] }], turnComplete: true });
  await done;
  assert.equal(messages.map((m) => m.text ?? '').join(''), 'Hello there');
  assert.ok(messages.at(-1).usageMetadata.totalTokenCount > 0, JSON.stringify(messages.at(-1)));
  session.close();
});

test('a base URL without the version', async () => {
  const client = new GoogleGenAI({ apiKey: 'nothing', httpOptions: { baseUrl: gatewayURL.replace(/\/v1$/, ''), headers: { 'x-gateway-api-key': gatewayKey, 'x-gateway-provider': await saved } } });
  assert.ok((await client.models.generateContent({ model, contents: 'Hello' })).text);
  assert.ok((await client.models.countTokens({ model, contents: 'Hello' })).totalTokens > 0);
  const { embeddings } = await client.models.embedContent({ model: 'gemini-embedding-001', contents: 'Hello' });
  assert.ok(embeddings[0].values.length);
  for await (const listed of await client.models.list()) {
    assert.ok(listed.name);
    break;
  }
  // The mock knows nothing of interactions: what matters is that it was asked.
  await assert.rejects(client.interactions.create({ model, input: 'Hello' }), (err) => !/ok":false/.test(String(err.message)));
});
