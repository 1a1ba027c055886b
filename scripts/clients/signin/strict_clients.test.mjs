// The gateway as an authorization server, held against openid-client and oauth4webapi.
// Both are as strict as they come; that plain http is allowed, which they ask for even
// towards 127.0.0.1, is the one exception.
import test from 'node:test';
import assert from 'node:assert/strict';
import * as openid from 'openid-client';
import * as oauth from 'oauth4webapi';
import { as, decide, gateway, openPage } from './support.mjs';

const session = process.env.SESSION;
const resource = process.env.RESOURCE; // address of an MCP server
const redirect = 'http://127.0.0.1:45678/callback';
const insecure = { [oauth.allowInsecureRequests]: true };

async function allow(url) {
  const page = await openPage(session, url.href ?? url);
  assert.equal(page.status, 200, page.text);
  const back = await decide(session, page.text, 'allow');
  return { status: back.status, location: back.headers.get('location') };
}

async function lists(token) {
  const res = await fetch(resource, {
    method: 'POST', headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } } }),
  });
  await res.text();
  return res.status;
}

test('openid-client: registration, code, PKCE, refresh, revocation', async () => {
  const config = await openid.dynamicClientRegistration(new URL(gateway), { client_name: 'Strict', redirect_uris: [redirect], token_endpoint_auth_method: 'none' }, openid.None(),
    { algorithm: 'oauth2', execute: [openid.allowInsecureRequests] });
  assert.equal(config.serverMetadata().device_authorization_endpoint, gateway + '/oauth/device_authorization');
  const pkceCodeVerifier = openid.randomPKCECodeVerifier();
  const expectedState = openid.randomState();
  const url = openid.buildAuthorizationUrl(config, {
    redirect_uri: redirect, scope: 'mcp', state: expectedState, resource, code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier), code_challenge_method: 'S256',
  });
  const back = await allow(url);
  assert.equal(back.status, 303);
  const tokens = await openid.authorizationCodeGrant(config, new URL(back.location), { pkceCodeVerifier, expectedState }, { resource });
  assert.equal(tokens.token_type, 'bearer');
  assert.equal(await lists(tokens.access_token), 200);
  const renewed = await openid.refreshTokenGrant(config, tokens.refresh_token, { resource });
  assert.notEqual(renewed.access_token, tokens.access_token);
  assert.equal(await lists(renewed.access_token), 200);
  await openid.tokenRevocation(config, renewed.refresh_token);
  await assert.rejects(openid.refreshTokenGrant(config, renewed.refresh_token), (e) => e.error === 'invalid_grant');
  await assert.rejects(openid.authorizationCodeGrant(config, new URL(back.location), { pkceCodeVerifier, expectedState }, { resource }), (e) => e.error === 'invalid_grant');
});

test('openid-client: a device signs in', async () => {
  const config = await openid.discovery(new URL(gateway), 'gateway-cli', undefined, openid.None(), { algorithm: 'oauth2', execute: [openid.allowInsecureRequests] });
  const asked = await openid.initiateDeviceAuthorization(config, { scope: 'session' });
  assert.equal((await allow(asked.verification_uri_complete)).status, 200);
  const tokens = await openid.pollDeviceAuthorizationGrant(config, asked);
  assert.equal((await (await as(tokens.access_token, 'GET', '/auth/self')).json()).session.method, 'device');
});

const issuer = new URL(gateway);
const server = async () => oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure }));

test('oauth4webapi: code, with the issuer in the answer', async () => {
  const server_ = await server();
  assert.equal(server_.authorization_response_iss_parameter_supported, true);
  const client = await oauth.processDynamicClientRegistrationResponse(await oauth.dynamicClientRegistrationRequest(server_, { client_name: 'Strict', redirect_uris: [redirect], token_endpoint_auth_method: 'none' }, insecure));
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const url = new URL(server_.authorization_endpoint);
  url.search = new URLSearchParams({ client_id: client.client_id, redirect_uri: redirect, response_type: 'code', scope: 'mcp:read', state, resource, code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' });
  const params = oauth.validateAuthResponse(server_, client, new URL((await allow(url)).location), state);
  const tokens = await oauth.processAuthorizationCodeResponse(server_, client, await oauth.authorizationCodeGrantRequest(server_, client, oauth.None(), params, redirect, verifier, { ...insecure, additionalParameters: { resource } }));
  assert.equal(tokens.scope, 'mcp:read');
  const renewed = await oauth.processRefreshTokenResponse(server_, client, await oauth.refreshTokenGrantRequest(server_, client, oauth.None(), tokens.refresh_token, insecure));
  await oauth.processRevocationResponse(await oauth.revocationRequest(server_, client, oauth.None(), renewed.access_token, insecure));
});

test('oauth4webapi: what a device is told meanwhile', async () => {
  const server_ = await server();
  const client = { client_id: 'gateway-cli' };
  const begin = async () => oauth.processDeviceAuthorizationResponse(server_, client, await oauth.deviceAuthorizationRequest(server_, client, oauth.None(), { scope: 'session' }, insecure));
  const ask = async (code) => oauth.processDeviceCodeResponse(server_, client, await oauth.deviceCodeGrantRequest(server_, client, oauth.None(), code, insecure));
  const told = (error) => (e) => e instanceof oauth.ResponseBodyError && e.error === error;
  const first = await begin();
  await assert.rejects(ask(first.device_code), told('authorization_pending'));
  await assert.rejects(ask(first.device_code), told('slow_down'));
  const page = await openPage(session, first.verification_uri_complete);
  assert.equal((await decide(session, page.text, 'deny')).status, 200);
  await assert.rejects(ask(first.device_code), told('access_denied'));
  const second = await begin();
  await allow(second.verification_uri_complete);
  assert.equal((await ask(second.device_code)).scope, 'session');
  await assert.rejects(ask(second.device_code), told('invalid_grant'));
});
