const s = require('../support.cjs');
const Sentry = require('@sentry/node');
const { BatchSpanProcessor } = require('@opentelemetry/sdk-trace-node');
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-http');
const processor = new BatchSpanProcessor(new OTLPTraceExporter({ url: s.COLLECTOR + '/v1/traces' }));
Sentry.init({ dsn: s.COLLECTOR.replace('//', '//key@') + '/1', tracesSampleRate: 1, sendDefaultPii: true, openTelemetrySpanProcessors: [processor] });
const OpenAI = require('openai');
const client = new OpenAI.OpenAI({ apiKey: s.key, baseURL: s.MOCK + '/v1', maxRetries: 0 });
s.run(() => s.openai(client), async () => { await processor.forceFlush(); await Sentry.close(500); });
