// A program over the client that generators make of the gateway's API document: it compiles only
// if the document describes paths, parameters, bodies, responses and errors with their types.
import createClient from 'openapi-fetch';
import type { components, paths } from './gateway.js';

export async function use(baseUrl: string, adminKey: string, workspaceKey: string) {
  const admin = createClient<paths>({ baseUrl, headers: { 'x-gateway-api-key': adminKey } });
  const name = `generated-${Date.now()}`;
  const made = await admin.POST('/configs', { body: { name, config: { provider: '@mock', retry: { attempts: 2 } }, workspace_id: 'default' } });
  const slug: string | undefined = made.data?.data?.slug;
  if (slug === undefined) throw new Error(`create: ${made.error?.error?.message}`);

  const read = await admin.GET('/configs/{slug}', { params: { path: { slug }, query: { workspace_id: 'default' } } });
  const config: components['schemas']['Config'] | undefined = read.data;
  const missing = await admin.GET('/configs/{slug}', { params: { path: { slug: 'no-such-config' } } });
  const refused: components['schemas']['Error'] | undefined = missing.error;

  const chat = createClient<paths>({ baseUrl, headers: { 'x-gateway-api-key': workspaceKey } });
  const answer = await chat.POST('/chat/completions', {
    params: { header: { 'x-gateway-config': slug } },
    body: { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'mock: say=Typed' }] },
  });
  const removed = await admin.DELETE('/configs/{slug}', { params: { path: { slug } } });
  return { name, read: config, status: missing.response.status, refused, answer: answer.data, removed: removed.response.status };
}

// What the types must not allow: a check that they are not any.
export function mistakes() {
  const client = createClient<paths>();
  // @ts-expect-error there is no such path
  void (() => client.GET('/confgs'));
  // @ts-expect-error a variable of the path is missing
  void (() => client.GET('/configs/{slug}', {}));
  // @ts-expect-error a required field is missing
  void (() => client.POST('/configs', { body: { name: 'a' } }));
  // @ts-expect-error a number is no name
  void (() => client.POST('/configs', { body: { name: 1, config: {} } }));
  // @ts-expect-error the value is not one of the enumeration
  const type: components['schemas']['UsageLimits'] = { type: 'pounds' };
  return type;
}
