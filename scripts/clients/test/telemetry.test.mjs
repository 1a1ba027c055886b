// Spans that the gateway exports, checked against the registry of OpenTelemetry's conventions
// and read by the packages of two consumers: Phoenix's conversion to OpenInference and
// Langfuse's span processor.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import * as registry from '@opentelemetry/semantic-conventions/incubating';
import { convertGenAISpanAttributesToOpenInferenceSpanAttributes as toOpenInference } from '@arizeai/openinference-genai';
import { LangfuseSpanProcessor } from '@langfuse/otel';
import { anthropic, asAnthropicTool, asOpenAITool, gatewayKey, gatewayURL, openai, weather } from '../support.mjs';

// fields reads a message of protobuf as a list of values for each number.
function fields(b) {
  const out = {};
  let at = 0;
  const varint = () => { let n = 0n; for (let s = 0n; ; s += 7n) { const x = b[at++]; n |= BigInt(x & 127) << s; if (x < 128) return n; } };
  while (at < b.length) {
    const key = Number(varint());
    let v;
    switch (key & 7) {
      case 0: v = varint(); break;
      case 1: v = b.subarray(at, at += 8); break;
      case 2: { const n = Number(varint()); v = b.subarray(at, at += n); break; }
      case 5: v = b.subarray(at, at += 4); break;
      default: throw new Error(`wire type ${key & 7}`);
    }
    (out[key >> 3] ??= []).push(v);
  }
  return out;
}
const text = (v) => Buffer.from(v ?? []).toString();

// value reads an AnyValue. A double is a Double, since 1.0 is not an int.
class Double { constructor(n) { this.n = n; } }
function value(b) {
  const v = fields(b);
  if (v[1]) return text(v[1][0]);
  if (v[2]) return v[2][0] !== 0n;
  if (v[3]) return Number(BigInt.asIntN(64, v[3][0]));
  if (v[4]) return new Double(Buffer.from(v[4][0]).readDoubleLE());
  return (fields(v[5][0])[1] ?? []).map(value);
}
const attributes = (list = []) => Object.fromEntries(list.map((pair) => { const p = fields(pair); return [text(p[1][0]), value(p[2][0])]; }));
const plain = (all) => Object.fromEntries(Object.entries(all).map(([k, v]) => [k, v instanceof Double ? v.n : v]));

// spansOf reads an ExportTraceServiceRequest.
const spansOf = (body) => (fields(body)[1] ?? []).flatMap((r) => (fields(r)[2] ?? []).flatMap((scope) => {
  const s = fields(scope);
  return (s[2] ?? []).map((raw) => {
    const f = fields(raw);
    const status = f[15] ? fields(f[15][0]) : {};
    return { schema: text(s[3]?.[0]), scope: text(fields(s[1][0])[1][0]), name: text(f[5][0]), kind: Number(f[6][0]), attributes: attributes(f[9]), status: Number(status[3]?.[0] ?? 0n) };
  });
}));

const received = { plain: [], newest: [] };
let collector;
const id = () => `span-${Math.random()}`;

async function admin(path, body) {
  const answer = await fetch(gatewayURL + path, { method: 'POST', headers: { 'x-gateway-api-key': process.env.GATEWAY_ADMIN_KEY, 'content-type': 'application/json' }, body: JSON.stringify(body) });
  assert.ok(answer.ok, await answer.text());
}

const picture = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=';
const messages = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: [{ type: 'text', text: 'Weather?' }, { type: 'image_url', image_url: { url: picture } }] },
  { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: { name: weather.name, arguments: '{"city":"Oslo"}' } }] },
  { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
];
const post = (path, body) => fetch(gatewayURL + path, { method: 'POST', headers: { 'x-gateway-api-key': gatewayKey, 'x-gateway-provider': '@mock-google', 'content-type': 'application/json' }, body: JSON.stringify(body) }).then((r) => r.text());

// calls are requests of every format; each is found by its metadata.
const calls = {
  chat: (o) => openai().chat.completions.create({ model: 'gpt-4o-mini', user: 'ada', messages, tools: [asOpenAITool(weather)], temperature: 1, top_p: 1, seed: 7, max_tokens: 500, stop: ['x'] }, o),
  stream: async (o) => { for await (const _ of await openai().chat.completions.create({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'mock: cached=64\n' + 'Hello there. '.repeat(90) }], stream: true, stream_options: { include_usage: true } }, o)); },
  tool: (o) => openai().chat.completions.create({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: `mock: call=${weather.name} {"city":"Oslo"}\nWeather?` }], tools: [asOpenAITool(weather)] }, o),
  responses: (o) => openai().responses.create({ model: 'gpt-4o-mini', instructions: 'Be brief.', input: 'Hello', tools: [{ type: 'function', ...weather }] }, o),
  messages: (o) => anthropic().messages.create({ model: 'claude-sonnet-4-5', max_tokens: 500, system: [{ type: 'text', text: 'Be brief. '.repeat(1200), cache_control: { type: 'ephemeral' } }], messages: [{ role: 'user', content: 'Hello' }], tools: [asAnthropicTool(weather)] }, o),
  embeddings: (o) => openai().embeddings.create({ model: 'text-embedding-3-small', input: 'Hello' }, o),
  image: (o) => openai().images.generate({ model: 'gpt-image-1', prompt: 'A planet' }, o),
  speech: (o) => openai().audio.speech.create({ model: 'tts-1', voice: 'alloy', input: 'Hello' }, o),
  failed: (o) => openai('@mock').chat.completions.create({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'mock: status=429\nHello' }] }, o),
};

// protocols are calls of tools and agents, which are spans of kind SERVER: what each must have by
// the conventions, besides its method.
const rpc = (path, method, params, headers) => fetch(gatewayURL + path, { method: 'POST', headers: { 'x-gateway-api-key': gatewayKey, 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers }, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }) });
const tools = (method, params) => async (o) => {
  const hello = await rpc('/mcp/observed/mcp', 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'client', version: '1' } }, {});
  assert.equal(hello.status, 200, await hello.text());
  const headers = { 'mcp-session-id': hello.headers.get('mcp-session-id') ?? '', 'mcp-protocol-version': '2025-11-25', ...o.headers };
  const answer = await rpc('/mcp/observed/mcp', method, params, headers);
  assert.equal(answer.status, 200, await answer.text());
};
const protocols = {
  'a tool': { call: tools('tools/call', { name: 'look', arguments: {} }), name: 'tools/call look', must: { 'mcp.method.name': 'tools/call', 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'look' } },
  'a tool that fails': { call: tools('tools/call', { name: 'break', arguments: {} }), name: 'tools/call break', must: { 'mcp.method.name': 'tools/call', 'gen_ai.tool.name': 'break', 'error.type': 'tool_error' } },
  'a resource': { call: tools('resources/read', { uri: 'file:///a' }), name: 'resources/read', must: { 'mcp.method.name': 'resources/read', 'mcp.resource.uri': 'file:///a' } },
  'a prompt': { call: tools('prompts/get', { name: 'greet' }), name: 'prompts/get greet', must: { 'mcp.method.name': 'prompts/get', 'gen_ai.prompt.name': 'greet' } },
  'an error of the server': { call: tools('prompts/get', { name: 'none' }), name: 'prompts/get none', must: { 'mcp.method.name': 'prompts/get', 'error.type': '-32602', 'rpc.response.status_code': '-32602' } },
  'an agent': {
    call: async (o) => {
      const answer = await rpc('/agent/observed', 'message/send', { message: { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'Hello' }] } }, o.headers);
      assert.equal(answer.status, 200, await answer.text());
    },
    name: 'SendMessage observed', must: { 'a2a.method.name': 'SendMessage', 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'observed' },
  },
};

// served answers as the tools and the agent do.
const served = {
  initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {}, resources: {}, prompts: {} }, serverInfo: { name: 'observed', version: '1' } }),
  'tools/list': () => ({ tools: ['look', 'break'].map((name) => ({ name, inputSchema: { type: 'object' } })) }),
  'tools/call': ({ name }) => ({ content: [{ type: 'text', text: name }], isError: name === 'break' }),
  'resources/list': () => ({ resources: [{ uri: 'file:///a', name: 'a' }] }),
  'resources/templates/list': () => ({ resourceTemplates: [] }),
  'resources/read': ({ uri }) => ({ contents: [{ uri, text: 'a' }] }),
  'prompts/list': () => ({ prompts: [{ name: 'greet' }, { name: 'none' }] }),
  'prompts/get': ({ name }) => name === 'greet' && { messages: [] },
  'message/send': () => ({ kind: 'message', messageId: 'r', role: 'agent', parts: [{ kind: 'text', text: 'Hello' }] }),
};
let upstream;

before(async () => {
  upstream = createServer(async (req, res) => {
    let body = '';
    for await (const part of req) body += part;
    const json = (status, value) => res.writeHead(status, { 'content-type': 'application/json' }).end(value && JSON.stringify(value));
    if (req.url.startsWith('/.well-known/agent')) return json(200, { name: 'Agent', description: '', version: '1', protocolVersion: '0.3.0', url: `http://${req.headers.host}/rpc`, preferredTransport: 'JSONRPC', defaultInputModes: ['text'], defaultOutputModes: ['text'], skills: [], capabilities: {} });
    const { id, method, params } = JSON.parse(body || '{}');
    if (id === undefined) return json(req.method === 'POST' ? 202 : 405);
    const result = served[method]?.(params);
    return json(200, { jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32602, message: 'none' } }) });
  });
  await new Promise((done) => { upstream.listen(0, '127.0.0.1', done); });
  const base = `http://127.0.0.1:${upstream.address().port}`;
  const own = { name: 'observed', slug: 'observed', workspace_id: 'default' };
  await admin('/mcp-integrations', { ...own, url: `${base}/mcp`, auth_type: 'none', transport: 'http' });
  await admin('/mcp-servers', { ...own, mcp_integration_id: 'observed' });
  await admin('/agent-integrations', { ...own, url: base });
  await admin('/agent-servers', { ...own, agent_integration_id: 'observed' });
  collector = createServer((req, res) => {
    const parts = [];
    req.on('data', (p) => parts.push(p));
    req.on('end', () => {
      const [, name, , signal] = req.url.split('/');
      if (signal === 'traces') received[name].push(...spansOf(Buffer.concat(parts)));
      res.end();
    });
  });
  await new Promise((done) => { collector.listen(0, '127.0.0.1', done); });
  const at = `http://127.0.0.1:${collector.address().port}`;
  await admin('/telemetry-destinations', { name: id(), endpoint: `${at}/plain`, include_content: true });
  await admin('/telemetry-destinations', { name: id(), endpoint: `${at}/newest`, include_content: true, semconv_stability_opt_in: 'gen_ai_latest_experimental' });
  // New destinations are noticed within seconds; requests before are not exported to them.
  for (const end = Date.now() + 20_000; !span('probe') || !span('probe', 'newest');) {
    assert.ok(Date.now() < end, 'no span came');
    await calls.embeddings({ headers: { 'x-gateway-metadata': '{"call":"probe"}' } });
    await new Promise((r) => { setTimeout(r, 100); });
  }
  for (const [name, call] of Object.entries(calls)) {
    await call({ headers: { 'x-gateway-metadata': JSON.stringify({ call: name, session_id: 'session-1' }) } }).catch((e) => { if (name !== 'failed') throw e; });
  }
  for (const [name, { call }] of Object.entries(protocols)) await call({ headers: { 'x-gateway-metadata': JSON.stringify({ call: name, session_id: 'session-1' }) } });
  for (let end = Date.now() + 20_000; [...Object.keys(calls), ...Object.keys(protocols)].some((name) => !span(name) || !span(name, 'newest'));) {
    assert.ok(Date.now() < end, `spans came of ${received.plain.map((s) => s.attributes['gateway.metadata.call'])}`);
    await new Promise((r) => { setTimeout(r, 20); });
  }
});
after(() => { collector.close(); upstream.closeAllConnections(); upstream.close(); });

const span = (name, from = 'plain') => received[from].find((s) => s.attributes['gateway.metadata.call'] === name);

// The registry: names, values of enumerations, and types by the examples of its declarations.
const names = new Set(Object.entries(registry).filter(([k]) => k.startsWith('ATTR_')).map(([, v]) => v));
const examples = new Map();
for (const file of ['experimental_attributes.d.mts', 'stable_attributes.d.mts']) {
  const source = readFileSync(new URL(file, import.meta.resolve('@opentelemetry/semantic-conventions')), 'utf8');
  for (const m of source.matchAll(/\/\*\*((?:(?!\*\/)[^])*)\*\/\ndeclare const ATTR_\w+: "([^"]+)"/g)) {
    const found = [...m[1].matchAll(/@example (.+)/g)].map(([, e]) => { try { return JSON.parse(e); } catch { return e; } });
    if (found.length > 0) examples.set(m[2], found);
  }
}
const values = (prefix) => Object.entries(registry).filter(([k]) => k.startsWith(`${prefix}_VALUE_`)).map(([, v]) => v);

// ahead are names that this version of the registry has not: the dollars that consumers read,
// and the newest name of written tokens, by opt-in only.
const ahead = { plain: ['gen_ai.usage.cost'], newest: ['gen_ai.usage.cost', 'gen_ai.usage.cache_write.input_tokens'] };
const kinds = { number: 'int', string: 'string', boolean: 'boolean', object: 'string[]' };
const kindOf = (v) => (v instanceof Double ? 'double' : Array.isArray(v) ? `${kinds[typeof v[0]]}[]` : kinds[typeof v]);
// Of an example 1.0 only 1 is left, so these are listed.
const doubles = ['gen_ai.request.temperature', 'gen_ai.request.top_p', 'gen_ai.request.frequency_penalty', 'gen_ai.request.presence_penalty', 'gen_ai.response.time_to_first_chunk', 'gen_ai.usage.cost'];

for (const from of ['plain', 'newest']) {
  test(`names, types and required attributes are those of the registry (${from})`, () => {
    assert.ok(examples.size > 300, `${examples.size} examples`);
    const used = new Set();
    for (const call of Object.keys(calls)) {
      const s = span(call, from);
      const all = s.attributes;
      assert.equal(s.schema, 'https://opentelemetry.io/schemas/1.45.0');
      assert.equal(s.kind, 3, 'CLIENT');
      assert.equal(s.name, `${all['gen_ai.operation.name']} ${all['gen_ai.request.model']}`);
      for (const [name, v] of Object.entries(all)) {
        if (name.startsWith('gateway.')) continue;
        used.add(name);
        assert.ok(names.has(name) || ahead[from].includes(name), `${call}: ${name} is not in the registry`);
        const examined = examples.get(name)?.[0];
        if (doubles.includes(name)) assert.equal(kindOf(v), 'double', `${call}: ${name}`);
        else if (examined !== undefined && typeof examined !== 'object') assert.equal(kindOf(v), kindOf(examined), `${call}: ${name}`);
        else if (Array.isArray(examined) && !name.endsWith('messages') && !name.endsWith('instructions') && !name.endsWith('definitions')) assert.equal(kindOf(v), kindOf(examined), `${call}: ${name}`);
      }
      for (const required of ['gen_ai.operation.name', 'gen_ai.provider.name', 'gen_ai.request.model', 'gen_ai.conversation.id']) assert.ok(all[required], `${call}: ${required}`);
      assert.ok(values('GEN_AI_PROVIDER_NAME').includes(all['gen_ai.provider.name']), all['gen_ai.provider.name']);
      if (!['speech'].includes(call)) assert.ok(values('GEN_AI_OPERATION_NAME').includes(all['gen_ai.operation.name']), all['gen_ai.operation.name']);
      if (all['gen_ai.output.type']) assert.ok(values('GEN_AI_OUTPUT_TYPE').includes(all['gen_ai.output.type']));
      assert.ok(all['server.address'], `${call}: server.address`);
      assert.ok(all['server.port'] > 0, `${call}: server.port is required beside server.address`);
      assert.equal(s.status === 2, 'error.type' in all, `${call}: error.type belongs to errors`);
      assert.equal(all['gen_ai.request.stream'], call === 'stream' ? true : undefined);
      assert.equal('gen_ai.response.time_to_first_chunk' in all, call === 'stream');
    }
    for (const name of ['gen_ai.input.messages', 'gen_ai.output.messages', 'gen_ai.system_instructions', 'gen_ai.tool.definitions', 'gen_ai.response.finish_reasons', 'gen_ai.response.id', 'gen_ai.request.seed', 'gen_ai.request.stop_sequences', 'gen_ai.usage.cache_read.input_tokens', 'user.id', 'error.type']) assert.ok(used.has(name), `${name} is not checked`);
    assert.equal(used.has('gen_ai.usage.cache_write.input_tokens'), from === 'newest');
    assert.equal(used.has('gen_ai.system'), from === 'plain');
  });
}

// The registry has no names for A2A yet.
const agentNames = ['a2a.method.name', 'a2a.protocol.version'];

for (const from of ['plain', 'newest']) {
  test(`spans of tools and agents are those of the registry (${from})`, () => {
    const known = values('MCP_METHOD_NAME');
    assert.ok(known.includes('tools/call'), known);
    for (const [call, { name, must }] of Object.entries(protocols)) {
      const s = span(call, from);
      const all = s.attributes;
      assert.equal(s.schema, 'https://opentelemetry.io/schemas/1.45.0');
      assert.equal(s.kind, 2, 'SERVER');
      assert.equal(s.name, name);
      for (const [key, v] of Object.entries(all)) {
        if (key.startsWith('gateway.')) continue;
        assert.ok(names.has(key) || agentNames.includes(key), `${call}: ${key} is not in the registry`);
        const examined = examples.get(key)?.[0];
        if (examined !== undefined) assert.equal(kindOf(v), typeof examined === 'number' && key.endsWith('status_code') ? 'string' : kindOf(examined), `${call}: ${key}`);
      }
      for (const [key, v] of Object.entries(must)) assert.equal(all[key], v, `${call}: ${key}`);
      if (all['mcp.method.name']) {
        assert.ok(known.includes(all['mcp.method.name']), all['mcp.method.name']);
        assert.equal(all['mcp.protocol.version'], '2025-11-25', call);
      }
      if (all['gen_ai.operation.name']) assert.ok(values('GEN_AI_OPERATION_NAME').includes(all['gen_ai.operation.name']), all['gen_ai.operation.name']);
      assert.equal(s.status === 2, 'error.type' in all, `${call}: error.type belongs to errors`);
      assert.equal('rpc.response.status_code' in all, 'rpc.response.status_code' in must, call);
      for (const key of Object.keys(all)) assert.ok(!key.startsWith('gen_ai.usage.') && key !== 'gen_ai.provider.name', `${call}: ${key} is of calls to models`);
    }
  });
}

// parts are the fields that the schemas of messages require of each type.
const parts = { text: ['content'], reasoning: ['content'], tool_call: ['name'], tool_call_response: ['response'], blob: ['modality', 'content'], uri: ['modality', 'uri'], file: ['modality', 'file_id'] };
const finishReasons = ['stop', 'length', 'content_filter', 'tool_call', 'error'];

test('messages, instructions and tools have the form of the schemas', () => {
  const check = (part, where) => {
    assert.ok(parts[part.type], `${where}: ${JSON.stringify(part)}`);
    for (const field of parts[part.type]) assert.ok(field in part, `${where}: ${field} of ${JSON.stringify(part)}`);
    if (part.modality) assert.ok(['image', 'video', 'audio'].includes(part.modality));
  };
  const seen = new Set();
  for (const call of Object.keys(calls)) {
    const read = (name) => JSON.parse(span(call).attributes[name] ?? '[]');
    for (const part of read('gen_ai.system_instructions')) check(part, `${call} instructions`);
    for (const kind of ['input', 'output']) {
      for (const message of read(`gen_ai.${kind}.messages`)) {
        assert.ok(['system', 'user', 'assistant', 'tool'].includes(message.role), `${call}: ${message.role}`);
        if (kind === 'output') assert.ok(finishReasons.includes(message.finish_reason), `${call}: ${message.finish_reason}`);
        for (const part of message.parts) { check(part, `${call} ${kind}`); seen.add(part.type); }
      }
    }
    for (const tool of read('gen_ai.tool.definitions')) {
      assert.equal(tool.type, 'function');
      assert.equal(tool.name, weather.name);
      assert.deepEqual(tool.parameters, weather.parameters);
    }
  }
  for (const type of ['text', 'tool_call', 'tool_call_response', 'blob']) assert.ok(seen.has(type), `no part is ${type}`);
});

test("Phoenix's conversion reads them", () => {
  const read = (call) => toOpenInference(plain(span(call).attributes));
  for (const call of Object.keys(calls)) {
    const kind = call === 'embeddings' ? 'EMBEDDING' : call === 'speech' ? undefined : 'LLM';
    if (kind) assert.equal(read(call)['openinference.span.kind'], kind, call);
  }
  const chat = read('chat');
  assert.equal(chat['llm.model_name'], 'gpt-4o-mini');
  assert.equal(chat['llm.provider'] ?? chat['llm.system'], 'openai');
  assert.equal(chat['llm.token_count.prompt'], span('chat').attributes['gen_ai.usage.input_tokens']);
  assert.equal(chat['llm.token_count.completion'], span('chat').attributes['gen_ai.usage.output_tokens']);
  const flat = JSON.stringify(chat);
  for (const said of ['Be brief.', 'Weather?', 'sunny', 'call_1', weather.name, weather.description]) assert.ok(flat.includes(said), `${said} is lost: ${flat.slice(0, 3000)}`);
  assert.equal(JSON.parse(chat['llm.tools.0.tool.json_schema']).function.name, weather.name);
  assert.deepEqual(JSON.parse(chat['llm.tools.0.tool.json_schema']).function.parameters, weather.parameters);
  const tool = read('tool');
  assert.equal(tool['llm.output_messages.0.message.tool_calls.0.tool_call.function.name'], weather.name);
  assert.deepEqual(JSON.parse(tool['llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments']), { city: 'Oslo' });
  assert.equal(read('stream')['llm.token_count.prompt_details.cache_read'], 64);
  assert.ok(read('messages')['llm.token_count.prompt_details.cache_write'] > 0);
});

test("Langfuse's processor exports them as calls of models, with their messages", async () => {
  const sent = [];
  const exporter = { export: (spans, done) => { sent.push(...spans); done({ code: 0 }); }, shutdown: async () => {}, forceFlush: async () => {} };
  const processor = new LangfuseSpanProcessor({ exporter, publicKey: 'pk', secretKey: 'sk', baseUrl: gatewayURL, exportMode: 'immediate' });
  for (const call of Object.keys(calls)) {
    const s = span(call);
    const context = { traceId: '0'.repeat(31) + '1', spanId: '0'.repeat(15) + '1', traceFlags: 1 };
    processor.onEnd({ ...s, attributes: plain(s.attributes), instrumentationScope: { name: s.scope }, spanContext: () => context, resource: { attributes: {} }, events: [], links: [], status: { code: s.status }, startTime: [1, 0], endTime: [2, 0], duration: [1, 0], ended: true });
  }
  await processor.forceFlush();
  assert.equal(sent.length, Object.keys(calls).length);
  const chat = sent.find((s) => s.attributes['gateway.metadata.call'] === 'chat');
  assert.equal(JSON.parse(chat.attributes['gen_ai.input.messages']).length, messages.length);
});
