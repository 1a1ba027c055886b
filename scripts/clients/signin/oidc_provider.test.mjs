// People sign in through oidc-provider, which takes nothing that the specifications do not
// allow. Plain http towards 127.0.0.1 is all that is unlike production.
import test, { after } from 'node:test';
import assert from 'node:assert/strict';
import { admin, as, Browser, connect, gateway, origin, startProvider } from './support.mjs';

const idp = await startProvider();
after(() => idp.close());

const cookie = (b) => b.jars.get(new URL(gateway).host)?.get('__Host-gateway-session');

for (const [id, method] of [['basic', 'client_secret_basic'], ['post', 'client_secret_post'], ['jwt', 'private_key_jwt']]) {
  test(`code and PKCE, with ${method}`, async () => {
    const made = await connect(idp, id, method);
    const verified = await admin('POST', `/auth/sso-configurations/${made.id}/verify`);
    assert.equal(verified.success, true, verified.message);
    const browser = new Browser();
    const end = await browser.go(`${gateway}/auth/login?email=ann@example.com&return_to=/landed`, 'ann', origin + '/landed');
    assert.equal(end.url, origin + '/landed', JSON.stringify(end));
    const self = await (await as(cookie(browser), 'GET', '/auth/self')).json();
    assert.equal(self.user.email, 'ann@example.com');
    assert.equal(self.user.first_name, 'Ann');

    // A fresh sign-in asks the person again, though the provider knows it.
    const fresh = await browser.go(`${gateway}/auth/login?email=ann@example.com&fresh=true&return_to=/landed`, 'ann', origin + '/landed');
    assert.equal(fresh.url, origin + '/landed', JSON.stringify(fresh));

    // The end of the session, then of the one at the provider, which sends the browser back.
    const out = await (await as(cookie(browser), 'POST', '/auth/logout')).json();
    assert.ok(out.logout_url.startsWith(idp.issuer), out.logout_url);
    assert.equal((await as(cookie(browser), 'GET', '/auth/self')).status, 401);
    const page = await browser.get(out.logout_url);
    assert.equal(page.status, 200, page.text);
    const action = /<form[^>]* action="([^"]*)"/.exec(page.text)[1];
    const xsrf = /name="xsrf" value="([^"]*)"/.exec(page.text)[1];
    const back = await browser.get(new URL(action, page.url), { method: 'POST', body: new URLSearchParams({ xsrf, logout: 'yes' }) });
    assert.ok(back.location?.startsWith(gateway), `${back.status} ${back.location} ${back.text}`);
  });
}

test('a code is good once, in the browser that began', async () => {
  await connect(idp, 'basic', 'client_secret_basic');
  const browser = new Browser();
  const { url } = await browser.go(`${gateway}/auth/login?email=ann@example.com`, 'ann', gateway + '/auth/callback');
  const thief = await new Browser().get(url);
  assert.equal(thief.status, 401, thief.text);
  const forged = await browser.get(url.replace(/state=[^&]*/, 'state=' + 'A'.repeat(43)));
  assert.equal(forged.status, 401, forged.text);
  assert.equal((await browser.get(url)).status, 302);
  assert.equal((await browser.get(url)).status, 401);
});

test('answers are held against who was asked', async () => {
  await connect(idp, 'basic', 'client_secret_basic');
  for (const [change, status] of [
    [(u) => u.searchParams.set('iss', 'https://other.example.com'), 401], [(u) => u.searchParams.delete('iss'), 401], [(u) => u.searchParams.set('code', 'x'.repeat(43)), 401],
    [(u) => u.searchParams.delete('code'), 401], [(u) => u.searchParams.append('code', 'x'), 401], [(u) => { u.search = u.search.replace(/code=/, 'code=%ff'); }, 401],
  ]) {
    const browser = new Browser();
    const { url } = await browser.go(`${gateway}/auth/login?email=ann@example.com`, 'ann', gateway + '/auth/callback');
    const to = new URL(url);
    change(to);
    const got = await browser.get(to);
    assert.ok(got.status === status || got.status === 400, `${to}: ${got.status} ${got.text}`);
    assert.equal(cookie(browser), undefined);
  }
});

test('who is not verified by the provider stays outside', async () => {
  await connect(idp, 'basic', 'client_secret_basic');
  const browser = new Browser();
  const got = await browser.go(`${gateway}/auth/login?email=unverified@example.com`, 'unverified');
  assert.equal(got.status, 401, got.text);
  assert.match(got.text, /not verified/);
});

test('nobody is sent elsewhere', async () => {
  for (const to of ['//evil.example.com', 'https://evil.example.com', '/\\evil.example.com', '/%0d%0aSet-Cookie:x', '\u0000', 'javascript:alert(1)', '/a\tb', '/é', '/' + 'x'.repeat(9000)]) {
    const got = await new Browser().get(`${gateway}/auth/login?email=ann@example.com&return_to=${encodeURIComponent(to)}`);
    assert.ok(got.status === 400 || (got.status === 302 && to === '/%0d%0aSet-Cookie:x'), `${to}: ${got.status}`);
  }
});
