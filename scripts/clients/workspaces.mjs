// Two workspaces that share one credential of the organisation, and a caller
// that brings a credential of its own.
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { gatewayURL, gatewayKey } from './support.mjs';

const adminKey = process.env.GATEWAY_ADMIN_KEY;

// admin calls the administration and gives the answer's JSON.
export async function admin(method, path, body) {
  const answer = await fetch(gatewayURL + path, {
    method, body: body && JSON.stringify(body),
    headers: { 'x-gateway-api-key': adminKey, ...(body && { 'content-type': 'application/json' }) },
  });
  const text = await answer.text();
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
  return text ? JSON.parse(text) : null;
}

// counted gives a client whose requests go under one trace, and how many it made.
export function counted(key, headers, options = {}) {
  const trace = crypto.randomUUID();
  const made = { trace, requests: 0, byStatus: {} };
  const client = new OpenAI({
    baseURL: gatewayURL, apiKey: key, maxRetries: 0, timeout: 20_000,
    defaultHeaders: { ...headers, 'x-gateway-trace-id': trace },
    fetch: async (...args) => {
      const answer = await fetch(...args);
      if (!String(args[0].url ?? args[0]).startsWith(gatewayURL)) return answer; // the library tries what fetch can do
      made.requests++;
      made.byStatus[answer.status] = (made.byStatus[answer.status] ?? 0) + 1;
      return answer;
    },
    ...options,
  });
  return { client, made };
}

// logged waits until each request of a client has its record, and gives them.
export async function logged(made, workspace) {
  let seen = [];
  for (let i = 0; i < 100; i++) {
    seen = [];
    for (let page = 0; ; page++) {
      const list = await admin('GET', `/logs?workspace_id=${workspace}&trace_id=${made.trace}&page_size=100&current_page=${page}`);
      seen.push(...list.data);
      if (seen.length >= list.total || list.data.length === 0) break;
    }
    if (seen.length >= made.requests) break;
    await new Promise((done) => setTimeout(done, 100));
  }
  const by = {};
  for (const r of seen) by[r.response_status_code] = (by[r.response_status_code] ?? 0) + 1;
  assert.deepEqual(by, made.byStatus, 'every request has one record with its status');
  return seen;
}

// ways are three callers: a workspace on a shared credential, with a stranger
// that must reach nothing of it; a workspace with a provider of its own; and a
// caller with a credential of its own.
export async function ways(name) {
  const { configurations } = await admin('GET', '/integrations/mock');
  const suffix = crypto.randomUUID().slice(0, 8);
  const slug = `common-${suffix}`;
  await admin('POST', '/integrations', { name: slug, slug, ai_provider_id: 'openai', key: 'mock-common', configurations });
  await admin('PUT', `/integrations/${slug}/workspaces`, { workspaces: [], global_workspace_access: { enabled: true }, override_existing_workspace_access: true });
  const workspace = async (n) => {
    const { id } = await admin('POST', '/workspaces', { name: `${name} ${n} ${suffix}` });
    const { key } = await admin('POST', '/api-keys/workspace/service', { name: 'k', workspace_id: id, scopes: ['completions.write'] });
    return { workspace: id, ...counted(key, { 'x-gateway-provider': `@${slug}` }) };
  };
  const mine = await workspace('mine'), stranger = await workspace('stranger');
  const { id } = (await admin('GET', '/workspaces')).data.find((w) => w.slug === 'default');
  const own = counted('mock-own', { 'x-gateway-api-key': gatewayKey, 'x-gateway-provider': 'openai', 'x-gateway-custom-host': configurations.custom_host });
  return [
    { name: 'a credential that workspaces share', ...mine, stranger },
    { name: 'a provider of the workspace', workspace: id, ...counted(gatewayKey, { 'x-gateway-provider': '@mock' }) },
    { name: 'a credential of the caller', workspace: id, ...own },
  ];
}

// missing asks as a stranger and expects what is asked for not to be there.
export async function missing(way, ask) {
  if (!way.stranger) return;
  await assert.rejects(async () => ask(way.stranger.client), (err) => err.status === 404, `${ask} reaches another workspace's things`);
}

// all gathers a list over its pages.
export async function all(list) {
  const out = [];
  for await (const one of list) out.push(one);
  return out;
}
