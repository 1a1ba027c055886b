// The whole of signing in, as Chromium does it: the page of a device, the identity
// provider on another site, the session's cookie, a change with its token and one without,
// the end of it. The binary comes with the package, for x86-64.
import test, { after } from 'node:test';
import assert from 'node:assert/strict';
import { as, connect, gateway, origin, post, startProvider } from './support.mjs';

process.env.AWS_LAMBDA_JS_RUNTIME ??= 'nodejs20.x'; // the package brings the libraries along
const { default: chromium } = await import('@sparticuz/chromium');
const { default: puppeteer } = await import('puppeteer-core');

const idp = await startProvider();
const chrome = await puppeteer.launch({ executablePath: await chromium.executablePath(), args: chromium.args.filter((a) => !/site-per-process|web-security|site-isolation/.test(a)), headless: 'shell' });
after(async () => { await chrome.close(); idp.close(); });

test('a person lets a device in, changes something, and leaves', async () => {
  await connect(idp, 'basic', 'client_secret_basic');
  const asked = await (await post('/oauth/device_authorization', { client_id: 'gateway-cli' })).json();
  const page = await chrome.newPage();
  page.setDefaultTimeout(120_000);
  const wrong = [];
  page.on('console', (m) => { if (/Content Security Policy|Refused/.test(m.text())) wrong.push(m.text()); });
  const press = async (selector) => Promise.all([page.waitForNavigation(), page.click(selector)]);

  // From the device's link to the sign-in, the provider, its consent, and back.
  await page.goto(asked.verification_uri_complete);
  await page.waitForSelector('input[name=email]');
  await page.type('input[name=email]', 'ann@example.com');
  await press('button');
  assert.equal(new URL(page.url()).origin, idp.issuer);
  await page.waitForSelector('input[name=login]');
  await page.$eval('input[name=login]', (e) => { e.value = 'ann'; });
  await page.type('input[name=password]', 'x');
  await press('[type=submit]');
  await page.waitForSelector('[type=submit]');
  await page.click('[type=submit]');
  await page.waitForSelector('button[value=allow]', { timeout: 60_000 }).catch(async () => assert.fail(`${page.url()}\n${await page.content()}\n${JSON.stringify(wrong)}`));
  assert.equal(new URL(page.url()).origin, origin);
  assert.ok((await page.content()).includes(asked.user_code));
  await press('button[value=allow]');
  assert.ok((await page.content()).includes('It is in'));
  assert.deepEqual(wrong, []);

  const given = await (await post('/oauth/token', { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', client_id: 'gateway-cli', device_code: asked.device_code })).json();
  assert.equal((await as(given.access_token, 'GET', '/auth/self')).status, 200, JSON.stringify(given));

  // The cookie is no script's, and no other site's.
  const cookie = (await page.cookies(gateway)).find((c) => c.name === '__Host-gateway-session');
  assert.ok(cookie.httpOnly && cookie.secure && cookie.sameSite === 'Strict' && cookie.path === '/', JSON.stringify(cookie));
  await page.goto(origin + '/healthz');
  assert.equal(await page.evaluate(() => document.cookie), '');
  const call = (method, path, headers) => page.evaluate(async (m, p, h) => {
    const res = await fetch(p, { method: m, headers: h });
    const text = await res.text();
    return { status: res.status, json: text ? JSON.parse(text) : null };
  }, method, '/v1' + path, headers ?? {});
  const self = await call('GET', '/auth/self');
  assert.equal(self.json.user.email, 'ann@example.com');

  // Another site's page sends the browser here: without the cookie, and changing nothing.
  const elsewhere = await chrome.newPage();
  await elsewhere.goto(idp.issuer + '/.well-known/openid-configuration');
  await elsewhere.evaluate((to) => { const f = document.createElement('form'); f.method = 'post'; f.action = to; document.body.append(f); f.submit(); }, gateway + '/auth/logout');
  await elsewhere.waitForFunction((at) => location.origin === at, {}, origin).catch(() => {});
  assert.equal((await call('GET', '/auth/self')).status, 200);

  assert.equal((await call('DELETE', '/auth/sessions')).status, 403);
  assert.equal((await call('DELETE', '/auth/sessions', { 'x-gateway-csrf': 'x' })).status, 403);
  assert.equal((await call('DELETE', '/auth/sessions', { 'x-gateway-csrf': self.json.csrf_token })).status, 200);
  assert.equal((await as(given.access_token, 'GET', '/auth/self')).status, 401);

  const out = await call('POST', '/auth/logout', { 'x-gateway-csrf': self.json.csrf_token });
  assert.equal(out.status, 200);
  assert.equal((await call('GET', '/auth/self')).status, 401);
  assert.equal((await page.cookies(gateway)).some((c) => c.name === '__Host-gateway-session'), false);
  await page.goto(out.json.logout_url);
  await page.waitForSelector('button[name=logout], [type=submit]');
  await Promise.all([page.waitForNavigation(), page.click('button[name=logout], [type=submit]')]);
  assert.equal(new URL(page.url()).origin, origin);
});
