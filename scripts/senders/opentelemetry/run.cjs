const s = require('../support.cjs');
const t = s.telemetry(require);
const { registerInstrumentations } = require('@opentelemetry/instrumentation');
const { OpenAIInstrumentation } = require('@opentelemetry/instrumentation-openai');
registerInstrumentations({ instrumentations: [new OpenAIInstrumentation()] });
const OpenAI = require('openai');
const client = new OpenAI.OpenAI({ apiKey: s.key, baseURL: s.MOCK + '/v1', maxRetries: 0 });
s.run(() => s.openai(client), t.flush);
