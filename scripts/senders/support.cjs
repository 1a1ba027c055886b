'use strict';
// Shared by the senders: where spans are sent, and the calls that each sender reports.
// MOCK is the address of the mock provider, COLLECTOR that of the receiver of OTLP, CASE
// the call to make.
const { MOCK, COLLECTOR, CASE } = process.env;
const text = 'Count the planets of the sun, name each one in its own line and say which of them has rings. '.repeat(6);

// telemetry registers a tracer that sends its spans to the recorder, in JSON or, with
// {protobuf: true}, in protobuf. Call flush before the process ends.
function telemetry(require, { processors = [], protobuf = false } = {}) {
  const { NodeTracerProvider, BatchSpanProcessor } = require('@opentelemetry/sdk-trace-node');
  const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-' + (protobuf ? 'proto' : 'http'));
  const { resourceFromAttributes } = require('@opentelemetry/resources');
  const exporter = new OTLPTraceExporter({ url: COLLECTOR + '/v1/traces' });
  const all = processors.length ? processors.map(make => make(exporter)) : [new BatchSpanProcessor(exporter)];
  const provider = new NodeTracerProvider({ resource: resourceFromAttributes({ 'service.name': 'shop' }), spanProcessors: all });
  provider.register();
  return { provider, exporter, flush: async () => { await provider.forceFlush(); await provider.shutdown(); } };
}

const key = { '429': 'mock-limited', '500': 'mock-broken' }[CASE] || 'mock-key';
const steer = {
  cached: 'mock: cached=64\n', reasoning: 'mock: reasoning=50\n', tool: 'mock: call=weather {"city":"Oslo"}\n', aborted: 'mock: cut=after:3\n',
}[CASE] || '';
const question = steer + text;
const streams = CASE === 'stream' || CASE === 'aborted';
const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };

// openai makes the call with a client of OpenAI's package.
async function openai(client) {
  const body = { model: 'gpt-5-mini', messages: [{ role: 'user', content: question }] };
  if (CASE === 'tool') body.tools = [{ type: 'function', function: { name: 'weather', description: 'Weather of a city', parameters: city } }];
  if (CASE === 'embeddings') return client.embeddings.create({ model: 'text-embedding-3-small', input: text });
  if (CASE === 'responses') return client.responses.create({ model: 'gpt-5-mini', input: text });
  if (!streams) return client.chat.completions.create(body);
  for await (const _ of await client.chat.completions.create({ ...body, stream: true, stream_options: { include_usage: true } }));
}

// anthropic makes the call with a client of Anthropic's package. A prompt is cached by its
// second call, so that case makes two.
async function anthropic(client) {
  const body = { model: 'claude-sonnet-4-5', max_tokens: 4096, messages: [{ role: 'user', content: question }] };
  if (CASE === 'tool') body.tools = [{ name: 'weather', description: 'Weather of a city', input_schema: city }];
  if (CASE === 'cached') {
    body.messages = [{ role: 'user', content: 'Which one is the largest?' }];
    body.system = [{ type: 'text', text: text.repeat(8), cache_control: { type: 'ephemeral' } }];
    await client.messages.create(body);
  }
  if (!streams) return client.messages.create(body);
  for await (const _ of await client.messages.create({ ...body, stream: true }));
}

// gemini makes the call with a client of Google's package.
async function gemini(client) {
  const body = { model: 'gemini-2.5-flash', contents: question };
  if (!streams) return client.models.generateContent(body);
  for await (const _ of await client.models.generateContentStream(body));
}

// langchain makes the call with LangChain's client of OpenAI, whose package the sender has.
async function langchain(require) {
  const { ChatOpenAI, OpenAIEmbeddings } = require('@langchain/openai');
  const configuration = { baseURL: MOCK + '/v1' };
  if (CASE === 'embeddings') return new OpenAIEmbeddings({ model: 'text-embedding-3-small', apiKey: key, maxRetries: 0, configuration }).embedQuery(text);
  let model = new ChatOpenAI({ model: 'gpt-5-mini', apiKey: key, maxRetries: 0, useResponsesApi: CASE === 'responses', configuration });
  if (CASE === 'tool') model = model.bindTools([{ type: 'function', function: { name: 'weather', description: 'Weather of a city', parameters: city } }]);
  if (!streams) return model.invoke(question);
  for await (const _ of await model.stream(question));
}

// Some senders leave a failure of a stream to nobody.
for (const event of ['uncaughtException', 'unhandledRejection']) process.on(event, e => console.error(CASE + ': ' + String((e && e.message) || e).slice(0, 200)));

// run makes a call, whose failure is what some cases are about, and flushes.
async function run(call, flush) {
  try { await call(); } catch (e) { console.error(CASE + ': ' + String(e.message || e).slice(0, 200)); }
  await flush();
  process.exit(0);
}

module.exports = { telemetry, openai, anthropic, gemini, langchain, run, key, question, text, city, streams, MOCK, COLLECTOR, CASE };
