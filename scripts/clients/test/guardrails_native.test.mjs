// What Google's, Amazon's and Cohere's own clients make of a guardrail that denies: before
// the call, on a plain response, before the first text of a stream, and in the middle of one.
import test from 'node:test';
import assert from 'node:assert/strict';
import { GoogleGenAI, ApiError } from '@google/genai';
import { BedrockRuntimeClient, ConverseCommand, ConverseStreamCommand, BedrockRuntimeServiceException } from '@aws-sdk/client-bedrock-runtime';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { CohereClientV2, CohereError } from 'cohere-ai';
import { gatewayURL, gatewayKey } from '../support.mjs';

const model = 'gpt-4o-mini';
const forbidden = 'my hunter2';
const echoed = `mock: echo\n${forbidden}`;
const late = `mock: echo\n${'one two three '.repeat(60)}hunter2`;
const denies = { 'default.regexMatch': { rule: 'hunter2', not: true }, deny: true };
const config = (side) => ({ 'x-gateway-config': JSON.stringify({ provider: '@mock', [side]: [denies] }) });

// Each client: how it is asked with headers, plain and streamed (which gives the texts), and
// how an error tells that a guardrail denied.
const clients = [
  {
    name: '@google/genai',
    client: (headers) => new GoogleGenAI({ apiKey: gatewayKey, httpOptions: { baseUrl: gatewayURL, headers } }).models,
    ask: async (c, text) => (await c.generateContent({ model, contents: text })).text,
    async *stream(c, text) { for await (const chunk of await c.generateContentStream({ model, contents: text })) yield chunk.text ?? ''; },
    several: (c) => c.generateContent({ model, contents: echoed, config: { candidateCount: 2 } }),
    isDenial: (e) => e instanceof ApiError && e.status === 446,
    // It ignores the event of the error; the gateway cuts the connection behind it.
    isDenialOfStream: (e) => e instanceof Error && /guardrail checks|terminated|Incomplete JSON segment at the end/.test(e.message),
  },
  {
    name: '@aws-sdk/client-bedrock-runtime',
    client: (headers) => {
      const c = new BedrockRuntimeClient({ endpoint: gatewayURL, region: 'us-east-1', credentials: { accessKeyId: 'a', secretAccessKey: 'b' }, maxAttempts: 1, requestHandler: new NodeHttpHandler() });
      c.middlewareStack.add((next) => (args) => { Object.assign(args.request.headers, { 'x-gateway-api-key': gatewayKey, ...headers }); return next(args); }, { step: 'finalizeRequest', priority: 'low' });
      return c;
    },
    ask: async (c, text) => (await c.send(new ConverseCommand({ modelId: model, messages: [{ role: 'user', content: [{ text }] }] }))).output.message.content[0].text,
    async *stream(c, text) {
      for await (const event of (await c.send(new ConverseStreamCommand({ modelId: model, messages: [{ role: 'user', content: [{ text }] }] }))).stream) yield event.contentBlockDelta?.delta.text ?? '';
    },
    isDenial: (e) => e.$metadata?.httpStatusCode === 446,
    isDenialOfStream: (e) => e instanceof BedrockRuntimeServiceException && /guardrail checks/.test(e.message),
  },
  {
    name: 'cohere-ai',
    client: (headers) => ({ cohere: new CohereClientV2({ token: gatewayKey, environment: gatewayURL }), options: { headers, maxRetries: 0 } }),
    ask: async ({ cohere, options }, text) => (await cohere.chat({ model, messages: [{ role: 'user', content: text }] }, options)).message.content[0].text,
    async *stream({ cohere, options }, text) {
      for await (const event of await cohere.chatStream({ model, messages: [{ role: 'user', content: text }] }, options)) {
        // Cohere has no event for errors: a stream that fails ends with this reason.
        if (event.type === 'message-end' && event.delta.finishReason === 'ERROR') throw new Error(event.delta.error ?? 'ERROR');
        if (event.type === 'content-delta') yield event.delta.message.content.text;
      }
    },
    isDenial: (e) => e instanceof CohereError && e.statusCode === 446,
    isDenialOfStream: (e) => e instanceof Error,
  },
];

async function read(stream) {
  let text = '';
  try {
    for await (const piece of stream) text += piece;
  } catch (error) {
    return { text, error };
  }
  return { text };
}

for (const c of clients) {
  test(`${c.name}: what is asked is denied`, async () => {
    await assert.rejects(c.ask(c.client(config('input_guardrails')), forbidden), c.isDenial);
    const { text, error } = await read(c.stream(c.client(config('input_guardrails')), forbidden));
    assert.equal(text, '');
    assert.ok(error && c.isDenial(error), `${error}`);
  });

  test(`${c.name}: what comes back is denied`, async () => {
    await assert.rejects(c.ask(c.client(config('output_guardrails')), echoed), c.isDenial);
    if (c.several) await assert.rejects(c.several(c.client(config('output_guardrails'))), c.isDenial);
    const { text, error } = await read(c.stream(c.client(config('output_guardrails')), echoed));
    assert.equal(text, '');
    assert.ok(error && c.isDenial(error), `${error}`);
  });

  test(`${c.name}: a stream that is denied on its way is no success`, async () => {
    const { text, error } = await read(c.stream(c.client(config('output_guardrails')), late));
    assert.ok(error, `it ended well with ${text}`);
    assert.ok(c.isDenialOfStream(error) || c.isDenial(error), `${error?.constructor?.name}: ${error}`);
    assert.doesNotMatch(text, /hunter2/);
  });

  test(`${c.name}: what nobody forbids passes`, async () => {
    assert.match(await c.ask(c.client(config('output_guardrails')), 'mock: echo\nfine'), /fine/);
    const { text, error } = await read(c.stream(c.client(config('output_guardrails')), 'mock: echo\nfine'));
    assert.equal(error, undefined);
    assert.match(text, /fine/);
  });
}
