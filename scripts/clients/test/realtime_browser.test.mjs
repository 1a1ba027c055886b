// A realtime session in a browser: a page opens a WebSocket with a client secret as a
// subprotocol, since browsers can send no headers. The binary comes with the package, for x86-64.
import test, { after } from 'node:test';
import assert from 'node:assert/strict';
import { gatewayURL, openai } from '../support.mjs';

process.env.AWS_LAMBDA_JS_RUNTIME ??= 'nodejs20.x'; // the package brings the libraries along
const { default: chromium } = await import('@sparticuz/chromium');
const { default: puppeteer } = await import('puppeteer-core');

const chrome = await puppeteer.launch({ executablePath: await chromium.executablePath(), args: chromium.args.filter((a) => !/site-per-process|web-security|site-isolation/.test(a)), headless: 'shell' });
after(() => chrome.close());

const model = '@mock/gpt-realtime';

// session runs a session in a page, and gives what it saw of it.
async function session(secret) {
  const page = await chrome.newPage();
  await page.goto(gatewayURL.replace(/\/v1$/, '/healthz'));
  return page.evaluate((url, key) => new Promise((resolve) => {
    const seen = { types: [], error: false };
    const ws = new WebSocket(url, ['realtime', `openai-insecure-api-key.${key}`]);
    ws.onopen = () => {
      seen.protocol = ws.protocol;
      ws.send(JSON.stringify({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello' }] } }));
      ws.send(JSON.stringify({ type: 'response.create' }));
    };
    ws.onmessage = (m) => {
      const e = JSON.parse(m.data);
      seen.types.push(e.type);
      if (e.type === 'response.done') {
        seen.status = e.response.status;
        ws.close(4002, 'enough');
      }
    };
    ws.onerror = () => { seen.error = true; };
    ws.onclose = (e) => resolve({ ...seen, code: e.code });
  }), gatewayURL.replace(/^http/, 'ws') + `/realtime?model=${encodeURIComponent(model)}`, secret);
}

test('a page speaks in a session that a client secret opens', async () => {
  const { value } = await openai('').realtime.clientSecrets.create({ session: { type: 'realtime', model } });
  assert.match(value, /^ek_/);
  const seen = await session(value);
  assert.deepEqual([seen.protocol, seen.status, seen.code, seen.error], ['realtime', 'completed', 4002, false], JSON.stringify(seen));
  assert.ok(seen.types.includes('session.created') && seen.types.includes('response.output_text.delta'), JSON.stringify(seen.types));
});

test('a secret that nobody made opens nothing', async () => {
  const seen = await session('ek_nobody');
  assert.ok(seen.error && seen.code === 1006 && seen.types.length === 0, JSON.stringify(seen));
});
