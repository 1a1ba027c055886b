// Further SDKs, and the previous major version of those that have tests of their own: one table of
// the same exchanges. Each row has the calls of its SDK, unchanged; base URL and key are ours. The
// lists of models that OpenRouter's and Cohere's SDKs read are those of their own services only.
import test from 'node:test';
import assert from 'node:assert/strict';
import { gatewayURL, gatewayKey, weather, asOpenAITool, asAnthropicTool } from '../support.mjs';

const root = gatewayURL.replace(/\/v1$/, '');
const paris = 'mock: call=get_weather {"city":"Paris"}';

async function admin(method, path, body, key = process.env.GATEWAY_ADMIN_KEY, headers = {}) {
  const got = await fetch(gatewayURL + path, { method, headers: { 'x-gateway-api-key': key, 'content-type': 'application/json', ...headers }, body: body && JSON.stringify(body) });
  const text = await got.text();
  assert.equal(got.status, 200, `${method} ${path}: ${text}`);
  return JSON.parse(text);
}

// saved gives the slug of a provider of a service at the mock provider.
const made = new Map();
function saved(service) {
  if (!made.has(service)) {
    made.set(service, (async () => {
      const { host } = await admin('GET', '/proxy/echo/x', undefined, gatewayKey, { 'x-gateway-provider': '@mock' });
      await admin('POST', '/integrations', { name: `${service} of the SDKs`, slug: `sdks${service}`, ai_provider_id: service, key: `mock-${service}`, configurations: { custom_host: `http://${host}` } });
      await admin('PUT', `/integrations/sdks${service}/workspaces`, { workspaces: [], global_workspace_access: { enabled: true }, override_existing_workspace_access: true });
      return `@sdks${service}`;
    })());
  }
  return made.get(service);
}

// chat is the row of an SDK with OpenAI's calls.
function chat(client, model = 'gpt-4o-mini') {
  const ask = (content, more = {}) => client.chat.completions.create({ model, messages: [{ role: 'user', content }], ...more });
  return {
    plain: async (content) => (await ask(content)).choices[0].message.content,
    stream: async function* (content) {
      for await (const chunk of await ask(content, { stream: true })) yield chunk.choices[0]?.delta?.content ?? '';
    },
    tool: async () => {
      const [call] = (await ask(paris, { tools: [asOpenAITool(weather)] })).choices[0].message.tool_calls;
      return [call.function.name, JSON.parse(call.function.arguments)];
    },
    models: async () => {
      const list = await client.models.list();
      return (list.data ?? list).map((m) => m.id);
    },
  };
}

// google is the row of Google's SDK.
const google = (module, target, model) => async () => {
  const { GoogleGenAI } = await import(module);
  const headers = target ? { 'x-gateway-provider': target.startsWith('@') ? target : await saved(target) } : {};
  const client = new GoogleGenAI({ apiKey: gatewayKey, httpOptions: { baseUrl: root, headers } });
  return {
    plain: async (contents) => (await client.models.generateContent({ model, contents })).text,
    stream: async function* (contents) {
      for await (const chunk of await client.models.generateContentStream({ model, contents })) yield chunk.text ?? '';
    },
    tool: async () => {
      const { name, description, parameters } = weather;
      const [call] = (await client.models.generateContent({ model, contents: paris, config: { tools: [{ functionDeclarations: [{ name, description, parametersJsonSchema: parameters }] }] } })).functionCalls;
      return [call.name, call.args];
    },
    models: async () => {
      const names = [];
      for await (const m of await client.models.list()) names.push(m.name);
      assert.equal((await client.models.get({ model: names[0] })).name, names[0]);
      return names;
    },
  };
};

const cohere = (module) => async () => {
  const { CohereClientV2 } = await import(module);
  const client = new CohereClientV2({ token: gatewayKey, environment: `${gatewayURL}/proxy`, headers: { 'x-gateway-provider': await saved('cohere') } });
  const ask = (content, more = {}) => ({ model: 'command-r', messages: [{ role: 'user', content }], ...more });
  const once = { maxRetries: 0, headers: { 'x-gateway-provider': await saved('cohere') } };
  return {
    plain: async (content) => (await client.chat(ask(content), once)).message.content[0].text,
    stream: async function* (content) {
      for await (const event of await client.chatStream(ask(content), once)) if (event.type === 'content-delta') yield event.delta.message.content.text;
    },
    tool: async () => {
      const [call] = (await client.chat(ask(paris, { tools: [asOpenAITool(weather)] }), once)).message.toolCalls;
      return [call.function.name, JSON.parse(call.function.arguments)];
    },
  };
};

const rows = {
  'groq-sdk': async () => chat(new (await import('groq-sdk')).default({ apiKey: gatewayKey, baseURL: root, maxRetries: 0, defaultHeaders: { 'x-gateway-provider': await saved('groq') } })),
  'together-ai': async () => chat(new (await import('together-ai')).default({ apiKey: gatewayKey, baseURL: gatewayURL, maxRetries: 0, defaultHeaders: { 'x-gateway-provider': '@mock' } })),
  'openai 6': async () => chat(new (await import('openai-older')).default({ apiKey: gatewayKey, baseURL: gatewayURL, maxRetries: 0, defaultHeaders: { 'x-gateway-provider': '@mock' } })),
  'portkey-ai 2': async () => chat(new (await import('portkey-older')).Portkey({ apiKey: gatewayKey, baseURL: gatewayURL, provider: '@mock', maxRetries: 0 })),
  '@openrouter/sdk': async () => {
    const { OpenRouter } = await import('@openrouter/sdk');
    const client = new OpenRouter({ apiKey: gatewayKey, serverURL: gatewayURL, retryConfig: { strategy: 'none' } });
    const ask = (content, more = {}) => client.chat.send({ chatRequest: { model: '@mock/gpt-4o-mini', messages: [{ role: 'user', content }], ...more } });
    return {
      plain: async (content) => (await ask(content)).choices[0].message.content,
      stream: async function* (content) {
        for await (const chunk of await ask(content, { stream: true })) yield chunk.choices[0]?.delta?.content ?? '';
      },
      tool: async () => {
        const [call] = (await ask(paris, { tools: [asOpenAITool(weather)] })).choices[0].message.toolCalls;
        return [call.function.name, JSON.parse(call.function.arguments)];
      },
    };
  },
  '@mistralai/mistralai': async () => {
    const { Mistral } = await import('@mistralai/mistralai');
    const client = new Mistral({ apiKey: gatewayKey, serverURL: root, retryConfig: { strategy: 'none' } });
    const ask = (content, more = {}) => ({ model: '@mock/gpt-4o-mini', messages: [{ role: 'user', content }], ...more });
    return {
      plain: async (content) => (await client.chat.complete(ask(content))).choices[0].message.content,
      stream: async function* (content) {
        for await (const { data } of await client.chat.stream(ask(content))) yield data.choices[0]?.delta?.content ?? '';
      },
      tool: async () => {
        const [call] = (await client.chat.complete(ask(paris, { tools: [asOpenAITool(weather)] }))).choices[0].message.toolCalls;
        return [call.function.name, JSON.parse(call.function.arguments)];
      },
      models: async () => (await client.models.list()).data.map((m) => m.id ?? m.raw.id),
    };
  },
  '@anthropic-ai/sdk 0': async () => {
    const client = new (await import('anthropic-older')).default({ apiKey: gatewayKey, baseURL: root, maxRetries: 0, defaultHeaders: { 'x-gateway-provider': '@mock-anthropic' } });
    const ask = (content, more = {}) => client.messages.create({ model: 'claude-sonnet-4-5', max_tokens: 99, messages: [{ role: 'user', content }], ...more });
    return {
      plain: async (content) => (await ask(content)).content[0].text,
      stream: async function* (content) {
        for await (const event of await ask(content, { stream: true })) if (event.type === 'content_block_delta') yield event.delta.text;
      },
      tool: async () => {
        const call = (await ask(paris, { tools: [asAnthropicTool(weather)] })).content.find((p) => p.type === 'tool_use');
        return [call.name, call.input];
      },
      models: async () => {
        const ids = [];
        for await (const m of client.models.list()) ids.push(m.id);
        return ids;
      },
    };
  },
  'ai 6': async () => {
    const { generateText, streamText, tool, jsonSchema } = await import('ai-older');
    const { createOpenAICompatible } = await import('ai-compatible-older');
    const model = createOpenAICompatible({ name: 'gateway', baseURL: gatewayURL, apiKey: gatewayKey })('@mock/gpt-4o-mini');
    const ask = (prompt, more = {}) => ({ model, prompt, maxRetries: 0, ...more });
    return {
      plain: async (prompt) => (await generateText(ask(prompt))).text,
      stream: async function* (prompt) {
        yield* streamText(ask(prompt)).textStream;
      },
      tool: async () => {
        const [call] = (await generateText(ask(paris, { tools: { get_weather: tool({ description: weather.description, inputSchema: jsonSchema(weather.parameters) }) } }))).toolCalls;
        return [call.toolName, call.input];
      },
    };
  },
  '@google/genai 3': google('@google/genai', 'google', 'gemini-2.5-flash'),
  '@google/genai 3 and a provider of another kind': google('@google/genai', '@mock', 'gpt-4o-mini'),
  '@google/genai 3 without a provider': google('@google/genai', '', '@mock/gpt-4o-mini'),
  '@google/genai 2': google('genai-older', 'google', 'gemini-2.5-flash'),
  '@google/genai 1': google('genai-oldest', 'google', 'gemini-2.5-flash'),
  'cohere-ai 7': cohere('cohere-older'),
};

for (const [name, row] of Object.entries(rows)) {
  test(name, async (t) => {
    const client = await row();
    await t.test('a response', async () => assert.equal(await client.plain('mock: say=Hello from the mock'), 'Hello from the mock'));
    await t.test('a stream', async () => {
      const pieces = [];
      for await (const piece of client.stream('mock: say=Hello from the mock')) if (piece) pieces.push(piece);
      assert.equal(pieces.join(''), 'Hello from the mock');
      assert.ok(pieces.length > 1);
    });
    await t.test('a tool call', async () => assert.deepEqual(await client.tool(), ['get_weather', { city: 'Paris' }]));
    await t.test('an error', async () => {
      await assert.rejects(client.plain('mock: status=429'), (e) => {
        assert.equal(e.status ?? e.statusCode, 429, e.stack);
        return true;
      });
    });
    if (client.models) await t.test('the list of models', async () => assert.ok((await client.models()).some((id) => /gpt-4o-mini|claude-|gemini-|command-/.test(id))));
  });
}
