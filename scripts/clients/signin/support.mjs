// What the tests of signing in share: a browser made of fetch, and the identity provider
// oidc-provider. The environment names a gateway whose organisation owns example.com.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { generateKeyPairSync } from 'node:crypto';
import Provider from 'oidc-provider';

export const gateway = process.env.GATEWAY_URL; // ends in /v1
export const origin = new URL(gateway).origin;

// admin calls the administration with a key.
export async function admin(method, path, body) {
  const res = await fetch(gateway + path, { method, headers: { 'x-gateway-api-key': process.env.GATEWAY_ADMIN_KEY, 'content-type': 'application/json' }, body: body && JSON.stringify(body) });
  const text = await res.text();
  assert.equal(res.status, 200, `${method} ${path}: ${text}`);
  return JSON.parse(text);
}

export const post = (path, form, headers = {}) => fetch(gateway + path, { method: 'POST', redirect: 'manual', body: new URLSearchParams(form), headers });

// as calls with a session.
export const as = (token, method, path, headers = {}) => fetch(gateway + path, { method, headers: { authorization: `Bearer ${token}`, ...headers } });

const unescaped = (s) => s.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&#34;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&');

// Browser keeps cookies by host, follows redirects, pages that go on by themselves, and
// fills in the forms of oidc-provider.
export class Browser {
  jars = new Map();
  async get(url, options = {}) {
    const at = new URL(url);
    const jar = this.jars.get(at.host) ?? this.jars.set(at.host, new Map()).get(at.host);
    const res = await fetch(at, { ...options, redirect: 'manual', headers: { ...options.headers, cookie: [...jar].map(([k, v]) => `${k}=${v}`).join('; ') } });
    for (const set of res.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(set);
      if (value === '' || /max-age=0|expires=Thu, 01 Jan 1970/i.test(set)) jar.delete(name);
      else jar.set(name, value);
    }
    return { status: res.status, url: at.href, location: res.headers.get('location') && new URL(res.headers.get('location'), at).href, text: await res.text() };
  }
  // go follows until a page stays, or until one is at an address that begins with stop.
  async go(url, person, stop = 'none:', options = {}) {
    for (let n = 0; n < 30; n++) {
      if (url.startsWith(stop)) return { url };
      const got = await this.get(url, options);
      options = {};
      const refresh = /http-equiv="refresh" content="0;url=([^"]*)"/.exec(got.text);
      if (got.location) url = got.location;
      else if (refresh) url = unescaped(refresh[1]);
      else if (/name="prompt" value="login"/.test(got.text)) [url, options] = submit(got, { prompt: 'login', login: person, password: 'x' });
      else if (/name="prompt" value="consent"/.test(got.text)) [url, options] = submit(got, { prompt: 'consent' });
      else return got;
    }
    throw new Error('no end of redirects');
  }
}

function submit(page, form) {
  const action = unescaped(/<form[^>]* action="([^"]*)"/.exec(page.text)[1]);
  return [new URL(action, page.url).href, { method: 'POST', body: new URLSearchParams(form) }];
}

// decide sends the form of a page of the gateway's.
export async function decide(session, page, decision) {
  const form = { decision };
  for (const [, name, value] of page.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)) form[unescaped(name)] = unescaped(value);
  return post(new URL(unescaped(/<form method="post" action="([^"]*)"/.exec(page)[1])).pathname.replace(/^\/v1/, ''), form, { cookie: `__Host-gateway-session=${session}` });
}

// openPage is a page of the gateway's as somebody sees it who has a session.
export async function openPage(session, url) {
  const browser = new Browser();
  browser.jars.set(new URL(gateway).host, new Map([['__Host-gateway-session', session]]));
  return browser.go(url);
}

// startProvider is oidc-provider with a client for each way to show who one is. Its people
// are name@example.com; each name may sign in.
export async function startProvider() {
  const server = createServer((req, res) => provider.callback()(req, res));
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  const issuer = `http://localhost:${server.address().port}`; // another site than the gateway's
  const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
  const { n, e, kty } = key;
  const client = (id, method, more) => ({
    client_id: id, token_endpoint_auth_method: method, redirect_uris: [gateway + '/auth/callback/default'], post_logout_redirect_uris: [gateway, origin, origin + '/'],
    response_types: ['code'], grant_types: ['authorization_code', 'refresh_token'], ...more,
  });
  const provider = new Provider(issuer, {
    clients: [
      client('basic', 'client_secret_basic', { client_secret: 'a secret: with & signs of 32 bytes' }),
      client('post', 'client_secret_post', { client_secret: 'another secret of 32 bytes or more' }),
      client('jwt', 'private_key_jwt', { jwks: { keys: [{ kty, n, e, kid: 'k1', use: 'sig', alg: 'RS256' }] } }),
    ],
    pkce: { required: () => true },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['given_name', 'family_name'] },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: id !== 'unverified', given_name: 'Ann', family_name: 'Lee' }) }),
    features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true } },
    cookies: { keys: ['a key of these tests'] },
    ttl: { AccessToken: 600, AuthorizationCode: 60, IdToken: 600, Grant: 3600, Session: 3600, Interaction: 600 },
  });
  provider.on('server_error', (_, err) => console.error(err));
  const secrets = {
    basic: { client_secret: 'a secret: with & signs of 32 bytes' }, post: { client_secret: 'another secret of 32 bytes or more' },
    jwt: { jwks: JSON.stringify({ keys: [{ ...key, kid: 'k1', use: 'sig', alg: 'RS256' }] }) },
  };
  return { issuer, provider, secrets, close: () => { server.closeAllConnections(); server.close(); } };
}

// connect makes the provider the only one of the organisation, by one of its clients.
export async function connect(idp, id, method) {
  for (const old of (await admin('GET', '/auth/sso-configurations')).data) {
    await admin('DELETE', `/auth/sso-configurations/${old.id}`);
  }
  return admin('POST', '/auth/sso-configurations', { name: id, issuer: idp.issuer, client_id: id, token_endpoint_auth_method: method, ...idp.secrets[id] });
}
