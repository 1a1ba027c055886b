// An MCP client in a browser: a page of another origin on this machine calls a server,
// and the documents of its sign-in, with headers that browsers ask about first.
import test, { after } from 'node:test';
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { gatewayKey, gatewayURL } from '../support.mjs';

process.env.AWS_LAMBDA_JS_RUNTIME ??= 'nodejs20.x'; // the package brings the libraries along
const { default: chromium } = await import('@sparticuz/chromium');
const { default: puppeteer } = await import('puppeteer-core');

const adminKey = process.env.GATEWAY_ADMIN_KEY;
const chrome = await puppeteer.launch({ executablePath: await chromium.executablePath(), args: chromium.args.filter((a) => !/site-per-process|web-security|site-isolation/.test(a)), headless: 'shell' });
const pages = createServer((_, res) => res.setHeader('content-type', 'text/html').end('<title>a client</title>'));
await new Promise((resolve) => pages.listen(0, '127.0.0.1', resolve));
after(async () => { await chrome.close(); pages.close(); upstream.close(); });

// A server that begins a session and has no tools.
const upstream = createServer(async (req, res) => {
  let body = '';
  for await (const part of req) body += part;
  const { id, method } = JSON.parse(body || '{}');
  if (id === undefined) return res.writeHead(req.method === 'POST' ? 202 : 405).end();
  const answer = method === 'initialize'
    ? { result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'upstream', version: '1' } } }
    : method === 'tools/list' ? { result: { tools: [] } } : { error: { code: -32601, message: 'no such method' } };
  res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
});
await new Promise((resolve) => upstream.listen(0, '127.0.0.1', resolve));

// admin makes a thing.
async function admin(path, body) {
  const res = await fetch(gatewayURL + path, { method: 'POST', headers: { 'content-type': 'application/json', 'x-gateway-api-key': adminKey }, body: JSON.stringify({ workspace_id: 'default', ...body }) });
  assert.equal(res.status, 200, await res.text());
}

test('a page of another origin calls a server and reads its answers', async () => {
  const slug = `paged-${Date.now()}`;
  await admin('/mcp-integrations', { name: slug, slug, url: `http://127.0.0.1:${upstream.address().port}/mcp`, auth_type: 'none', transport: 'http' });
  await admin('/mcp-servers', { name: slug, slug, mcp_integration_id: slug });
  const page = await chrome.newPage();
  await page.goto(`http://localhost:${pages.address().port}/`);
  const seen = await page.evaluate(async (base, key, at) => {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'x-gateway-api-key': key };
    const call = async (path, body) => {
      try {
        const res = await fetch(base + path, body ? { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...body }) } : {});
        return { status: res.status, text: await res.text(), challenge: res.headers.get('www-authenticate'), session: res.headers.get('mcp-session-id') };
      } catch (e) {
        return { error: String(e) };
      }
    };
    const initialize = { method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } } };
    const out = { server: await call(at, initialize), document: await call('/.well-known/oauth-authorization-server') };
    headers['x-gateway-api-key'] = 'wrong';
    out.refused = await call(at, initialize);
    out.elsewhere = await call('/chat/completions', { method: 'x' });
    return out;
  }, gatewayURL, gatewayKey, `/mcp/${slug}/mcp`);
  assert.equal(seen.server.status, 200, JSON.stringify(seen.server));
  assert.match(seen.server.text, /protocolVersion/);
  assert.ok(seen.server.session, 'the id of the session can be read');
  assert.match(seen.document.text ?? '', /token_endpoint/, JSON.stringify(seen.document));
  assert.equal(seen.refused.status, 401, JSON.stringify(seen.refused));
  assert.match(seen.refused.challenge ?? '', /Bearer/);
  assert.match(seen.elsewhere.error ?? '', /Failed to fetch/, JSON.stringify(seen.elsewhere));
});
