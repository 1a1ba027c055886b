const s = require('../support.cjs');
const Sentry = require('@sentry/node');
const { BatchSpanProcessor } = require('@opentelemetry/sdk-trace-node');
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-http');
const processor = new BatchSpanProcessor(new OTLPTraceExporter({ url: s.COLLECTOR + '/v1/traces' }));
Sentry.init({ dsn: s.COLLECTOR.replace('//', '//key@') + '/1', tracesSampleRate: 1, sendDefaultPii: true, openTelemetrySpanProcessors: [processor], integrations: [Sentry.vercelAIIntegration({ force: true })] });
const { generateText, streamText, embed, tool, jsonSchema } = require('ai');
const { createOpenAI } = require('@ai-sdk/openai');
const openai = createOpenAI({ apiKey: s.key, baseURL: s.MOCK + '/v1' });
s.run(async () => {
  if (s.CASE === 'embeddings') return embed({ model: openai.embedding('text-embedding-3-small'), value: s.text, maxRetries: 0 });
  const model = s.CASE === 'responses' ? openai.responses('gpt-5-mini') : openai.chat('gpt-5-mini');
  const o = { model, prompt: s.question, maxRetries: 0 };
  if (s.CASE === 'tool') o.tools = { weather: tool({ description: 'Weather of a city', inputSchema: jsonSchema(s.city) }) };
  if (!s.streams) return generateText(o);
  for await (const _ of streamText({ ...o, onError() {} }).fullStream);
}, async () => { await processor.forceFlush(); await Sentry.close(500); });
