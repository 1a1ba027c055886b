// What the official SDK of each shape makes of refusals: the exception that the SDK has for
// the status, with the gateway's own sentence, after one request.
import test from 'node:test';
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI, ApiError } from '@google/genai';
import { BedrockRuntimeClient, ConverseCommand } from '@aws-sdk/client-bedrock-runtime';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { CohereClientV2, CohereError } from 'cohere-ai';
import { gatewayURL, gatewayKey } from '../support.mjs';

const root = gatewayURL.replace(/\/v1$/, '');
const model = 'gpt-4o-mini';

// Each client, with further headers and a key: how it is asked, and the exceptions by status.
const clients = {
  openai: {
    ask: (key, headers) => new OpenAI({ baseURL: gatewayURL, apiKey: key, defaultHeaders: headers })
      .chat.completions.create({ model, messages: [{ role: 'user', content: 'x' }] }),
    is: { 400: (e) => e instanceof OpenAI.BadRequestError, 401: (e) => e instanceof OpenAI.AuthenticationError, 403: (e) => e instanceof OpenAI.PermissionDeniedError, 429: (e) => e instanceof OpenAI.RateLimitError, 446: (e) => e instanceof OpenAI.APIError && e.status === 446 },
  },
  'openai, responses': {
    ask: (key, headers) => new OpenAI({ baseURL: gatewayURL, apiKey: key, defaultHeaders: headers }).responses.create({ model, input: 'x' }),
    is: { 400: (e) => e instanceof OpenAI.BadRequestError, 401: (e) => e instanceof OpenAI.AuthenticationError, 403: (e) => e instanceof OpenAI.PermissionDeniedError, 429: (e) => e instanceof OpenAI.RateLimitError, 446: (e) => e instanceof OpenAI.APIError && e.status === 446 },
  },
  anthropic: {
    ask: (key, headers) => new Anthropic({ baseURL: root, apiKey: null, authToken: key, defaultHeaders: headers })
      .messages.create({ model, max_tokens: 9, messages: [{ role: 'user', content: 'x' }] }),
    is: { 400: (e) => e instanceof Anthropic.BadRequestError, 401: (e) => e instanceof Anthropic.AuthenticationError, 403: (e) => e instanceof Anthropic.PermissionDeniedError, 429: (e) => e instanceof Anthropic.RateLimitError, 446: (e) => e instanceof Anthropic.APIError && e.status === 446 && e.error?.type === 'error' },
  },
  google: {
    ask: (key, headers) => new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: root, headers } }).models.generateContent({ model, contents: 'x' }),
    is: Object.fromEntries([400, 401, 403, 429, 446].map((status) => [status, (e) => e instanceof ApiError && e.status === status && JSON.parse(e.message).error.code === status])),
  },
  'google, countTokens': {
    ask: (key, headers) => new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: root, headers } }).models.countTokens({ model, contents: 'x' }),
    is: Object.fromEntries([400, 401].map((status) => [status, (e) => e instanceof ApiError && e.status === status && JSON.parse(e.message).error.code === status])),
  },
  bedrock: {
    ask: (key, headers) => {
      const c = new BedrockRuntimeClient({ endpoint: root, region: 'us-east-1', maxAttempts: 1, credentials: { accessKeyId: 'a', secretAccessKey: 'b' }, requestHandler: new NodeHttpHandler() });
      c.middlewareStack.add((next) => (args) => { Object.assign(args.request.headers, { 'x-gateway-api-key': key, ...headers }); return next(args); }, { step: 'finalizeRequest', priority: 'low' });
      return c.send(new ConverseCommand({ modelId: model, messages: [{ role: 'user', content: [{ text: 'x' }] }] }));
    },
    is: { 400: (e) => e.name === 'ValidationException', 401: (e) => e.name === 'AccessDeniedException', 403: (e) => e.name === 'AccessDeniedException', 429: (e) => e.name === 'ThrottlingException', 446: (e) => e.name === 'ValidationException' },
  },
  cohere: {
    ask: (key, headers) => new CohereClientV2({ token: key, environment: root }).chat({ model, messages: [{ role: 'user', content: 'x' }] }, { headers }),
    is: Object.fromEntries([400, 401, 403, 446].map((status) => [status, (e) => e instanceof CohereError && e.statusCode === status])),
  },
};

// key makes a service key of the workspace.
async function key(scope, more) {
  const answer = await fetch(`${gatewayURL}/api-keys/workspace/service`, {
    method: 'POST', headers: { 'x-gateway-api-key': process.env.GATEWAY_ADMIN_KEY, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'rejected', workspace_id: 'default', scopes: [scope], ...more }),
  });
  return (await answer.json()).key;
}

const daily = await key('completions.write', { rate_limits: [{ type: 'requests', unit: 'rpd', value: 1 }] });
await new OpenAI({ baseURL: gatewayURL, apiKey: daily, defaultHeaders: { 'x-gateway-provider': '@mock' } }).chat.completions.create({ model, messages: [{ role: 'user', content: 'x' }] });

const denies = JSON.stringify({ provider: '@mock', input_guardrails: [{ 'default.contains': { words: ['other'], operator: 'any' }, deny: true }] });
const refusals = [
  { status: 401, key: 'wrong', headers: {}, sentence: /API key/i },
  { status: 400, key: gatewayKey, headers: { 'x-gateway-provider': 'nobody' }, sentence: /is not a provider of this gateway/ },
  { status: 403, key: await key('logs.list'), headers: {}, sentence: /completions\.write/ },
  { status: 429, key: daily, headers: { 'x-gateway-provider': '@mock' }, sentence: /rate limit/i },
  { status: 446, key: gatewayKey, headers: { 'x-gateway-config': denies }, sentence: /guardrail checks/ },
];

for (const [name, c] of Object.entries(clients)) {
  for (const r of refusals.filter(({ status }) => c.is[status])) {
    test(`${name}: ${r.status}`, async () => {
      await assert.rejects(c.ask(r.key, r.headers), (e) => {
        assert.ok(c.is[r.status](e), `${e.constructor?.name} ${e.name}: ${e.message}`);
        assert.match(`${e.message} ${JSON.stringify(e.body ?? '')}`, r.sentence);
        return true;
      });
    });
  }
}
