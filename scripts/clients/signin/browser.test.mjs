// The whole of signing in, as Chromium does it: the page of a device, the identity
// provider on another site, the session's cookie, a change with its token and one without,
// the end of it.
import test, { after } from 'node:test';
import assert from 'node:assert/strict';
import { as, connect, gateway, origin, post, startProvider } from './support.mjs';
import { launch, open } from './chromium.mjs';

const idp = await startProvider();
const chrome = await launch();
after(async () => { await chrome.close(); idp.close(); });

test('a person lets a device in, changes something, and leaves', async () => {
  await connect(idp, 'basic', 'client_secret_basic');
  const asked = await (await post('/oauth/device_authorization', { client_id: 'gateway-cli' })).json();
  const { page, wrong, press, fill, click } = await open(chrome);

  // From the device's link to the sign-in, the provider, its consent, and back.
  await page.goto(asked.verification_uri_complete);
  await page.waitForSelector('input[name=email]');
  await fill('input[name=email]', 'ann@example.com');
  await press('button');
  assert.equal(new URL(page.url()).origin, idp.issuer);
  await page.waitForSelector('input[name=login]');
  await fill('input[name=login]', 'ann');
  await fill('input[name=password]', 'x');
  await press('[type=submit]');
  await page.waitForSelector('[type=submit]');
  await click('[type=submit]');
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
  await press('button[name=logout], [type=submit]');
  assert.equal(new URL(page.url()).origin, origin);
});
