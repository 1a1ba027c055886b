const s = require('../support.cjs');
const { LangfuseSpanProcessor } = require('@langfuse/otel');
const t = s.telemetry(require, { processors: [exporter => new LangfuseSpanProcessor({ exporter, publicKey: 'pk', secretKey: 'sk', baseUrl: s.COLLECTOR })] });
const { observeOpenAI } = require('@langfuse/openai');
const OpenAI = require('openai');
const client = observeOpenAI(new OpenAI.OpenAI({ apiKey: s.key, baseURL: s.MOCK + '/v1', maxRetries: 0 }), { sessionId: 'session-1', userId: 'ada' });
s.run(() => s.openai(client), t.flush);
