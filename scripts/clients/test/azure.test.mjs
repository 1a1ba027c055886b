// The client for Azure, pointed at the gateway: it names deployments in addresses.
import test from 'node:test';
import assert from 'node:assert/strict';
import OpenAI, { AzureOpenAI, toFile } from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { gatewayURL, gatewayKey } from '../support.mjs';

const bases = { 'with the version': gatewayURL, 'at the root': gatewayURL.replace(/\/v1$/, '') };
const azure = (endpoint, deployment, more = {}) => new AzureOpenAI({
  endpoint, apiKey: gatewayKey, apiVersion: '2024-10-21', deployment, maxRetries: 0, defaultHeaders: { 'x-gateway-provider': '@mock' }, ...more,
});

for (const [name, endpoint] of Object.entries(bases)) {
  test(`what a deployment is asked, ${name}`, async () => {
    const messages = [{ role: 'user', content: 'Hello' }];
    const chat = await azure(endpoint, 'gpt-4o-mini').chat.completions.create({ model: '', messages });
    assert.match(chat.model, /gpt-4o-mini/);
    const translated = await azure(endpoint, 'claude-sonnet-4-5', { defaultHeaders: { 'x-gateway-provider': '@mock-anthropic' } }).chat.completions.create({ messages });
    assert.match(translated.model, /claude-sonnet-4-5/);
    let text = '';
    for await (const chunk of await azure(endpoint).chat.completions.create({ model: '@mock/gpt-4o-mini', messages, stream: true })) text += chunk.choices[0]?.delta?.content ?? '';
    assert.ok(text);
    assert.ok((await azure(endpoint, 'gpt-3.5-turbo-instruct').completions.create({ model: '', prompt: 'Hello' })).choices.length);
    assert.ok((await azure(endpoint, 'text-embedding-3-small').embeddings.create({ model: '', input: 'Hello' })).data.length);
    assert.ok((await azure(endpoint, 'dall-e-3').images.generate({ prompt: 'a cat' })).data.length);
    assert.ok((await (await azure(endpoint, 'tts-1').audio.speech.create({ model: '', input: 'Hello', voice: 'alloy' })).arrayBuffer()).byteLength);
    assert.ok((await azure(endpoint, 'whisper-1').audio.transcriptions.create({ model: '', file: await toFile(Buffer.from('sound'), 'a.mp3') })).text);
    assert.ok((await azure(endpoint).responses.create({ model: 'gpt-4o-mini', input: 'Hello' })).output.length);
    assert.ok((await azure(endpoint).files.list()).data);
  });
}

test("Azure's own version", async () => {
  const client = new OpenAI({ baseURL: gatewayURL.replace(/\/v1$/, '/openai/v1'), apiKey: gatewayKey, maxRetries: 0, defaultHeaders: { 'x-gateway-provider': '@mock' } });
  assert.ok((await client.chat.completions.create({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello' }] })).choices.length);
  assert.ok((await client.responses.create({ model: 'gpt-4o-mini', input: 'Hello' })).output.length);
});

for (const [name, base] of Object.entries({ 'with the version': process.env.GATEWAY_TLS_URL, 'at the root': process.env.GATEWAY_TLS_URL.replace(/\/v1$/, '') })) test(`a realtime session of a deployment, ${name}`, async () => {
  const client = azure(base, undefined, { apiVersion: '2025-04-01-preview' });
  const ws = await OpenAIRealtimeWS.azure(client, { deploymentName: 'gpt-realtime', options: { headers: { 'x-gateway-api-key': gatewayKey, 'x-gateway-provider': '@mock' } } });
  const created = await new Promise((resolve, reject) => {
    ws.on('session.created', resolve);
    ws.on('error', reject);
  });
  assert.ok(created.session);
  ws.close();
});
