// The whole of signing in by SAML, as Chromium does it: the identity provider is on another
// site, whose page posts the response, so that only the cookie of the sign-in comes along.
import test, { after } from 'node:test';
import assert from 'node:assert/strict';
import { admin, as, gateway, origin, post } from './support.mjs';
import { launch, open } from './chromium.mjs';

const idp = process.env.SAML_PROVIDER;
const chrome = await launch();
after(() => chrome.close());

for (const old of (await admin('GET', '/auth/sso-configurations')).data) await admin('DELETE', `/auth/sso-configurations/${old.id}`);
const made = await admin('POST', '/auth/sso-configurations', { name: 'by SAML', protocol: 'saml', metadata_url: idp + '/metadata' });
const config = await admin('GET', `/auth/sso-configurations/${made.id}`);
const next = (email, options = {}) => fetch(idp + '/next', { method: 'POST', body: JSON.stringify({ user: { email, given: 'Ann', family: 'Lee' }, options: { acs: config.sp_acs_url, ...options } }) });
const session = async (page) => (await page.cookies(gateway)).find((c) => c.name === '__Host-gateway-session');

test('a person lets a device in, and shows again who it is', async () => {
  await next('ann@example.com');
  const asked = await (await post('/oauth/device_authorization', { client_id: 'gateway-cli' })).json();
  const { page, wrong, press, fill } = await open(chrome);
  await page.goto(asked.verification_uri_complete);
  await page.waitForSelector('input[name=email]');
  await fill('input[name=email]', 'ann@example.com');
  await press('button');
  await page.waitForSelector('button[value=allow]').catch(async () => assert.fail(`${page.url()}\n${await page.content()}\n${JSON.stringify(wrong)}`));
  assert.equal(new URL(page.url()).origin, origin);
  await press('button[value=allow]');
  assert.ok((await page.content()).includes('It is in'));
  assert.deepEqual(wrong, []);
  const given = await (await post('/oauth/token', { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', client_id: 'gateway-cli', device_code: asked.device_code })).json();
  const device = await as(given.access_token, 'GET', '/auth/self');
  assert.equal(device.status, 200, JSON.stringify(given));
  assert.equal((await device.json()).session.method, 'device');

  const cookie = await session(page);
  assert.ok(cookie.httpOnly && cookie.secure && cookie.sameSite === 'Strict' && cookie.path === '/', JSON.stringify(cookie));
  const shown = async () => (await as((await session(page)).value, 'GET', '/auth/self')).json();
  const before = await shown();
  assert.equal(before.session.method, 'saml');
  assert.equal(before.user.email, 'ann@example.com');

  // Asked again, the person gets another session.
  await page.goto(gateway + '/auth/login?email=ann@example.com&fresh=true&return_to=/healthz');
  await page.waitForFunction((to) => location.href === to, {}, origin + '/healthz');
  const after = await shown();
  assert.notEqual(after.session.id, before.session.id);
  assert.ok(after.session.authenticated_at >= before.session.authenticated_at);
});

test('a response is of no use in another browser, nor twice', async () => {
  await next('ann@example.com');
  const begun = await fetch(gateway + '/auth/login?email=ann@example.com', { redirect: 'manual' });
  const form = await (await fetch(begun.headers.get('location'))).text();
  const { page } = await open(chrome);
  await (await page.createCDPSession()).send('Network.clearBrowserCookies'); // as another browser
  await page.goto(idp + '/metadata');
  const value = (name) => new RegExp(`name="${name}"\\s+value="([^"]*)"`).exec(form)[1].replaceAll('&#34;', '"').replaceAll('&#43;', '+').replaceAll('&amp;', '&');
  const [answer] = await Promise.all([
    page.waitForResponse((r) => r.url() === config.sp_acs_url),
    // Without leaving the page, which this Chromium does not always survive on a busy machine.
    page.evaluate(async (to, fields) => { await fetch(to, { method: 'POST', mode: 'no-cors', credentials: 'include', body: new URLSearchParams(fields) }); },
      config.sp_acs_url, { SAMLResponse: value('SAMLResponse'), RelayState: value('RelayState') }),
  ]);
  assert.equal(answer.status(), 401); // its text is nothing that another site may read
  assert.equal(await session(page), undefined);

  // Its twin: the browser that began it, once.
  const [, name, secret] = /^([^=]+)=([^;]*)/.exec(begun.headers.getSetCookie()[0]);
  const bring = () => fetch(config.sp_acs_url, { method: 'POST', redirect: 'manual', headers: { cookie: `${name}=${secret}` }, body: new URLSearchParams({ SAMLResponse: value('SAMLResponse'), RelayState: value('RelayState') }) });
  const answers = await Promise.all([bring(), bring(), bring(), bring()]);
  assert.deepEqual(answers.map((a) => a.status).sort(), [303, 401, 401, 401]);
});
