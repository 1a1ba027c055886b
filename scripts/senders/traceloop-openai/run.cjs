const s = require('../support.cjs');
const t = s.telemetry(require, { protobuf: true });
const { OpenAIInstrumentation } = require('@traceloop/instrumentation-openai');
const OpenAI = require('openai');
new OpenAIInstrumentation().manuallyInstrument(OpenAI.OpenAI || OpenAI);
const client = new (OpenAI.OpenAI || OpenAI)({ apiKey: s.key, baseURL: s.MOCK + '/v1', maxRetries: 0 });
s.run(() => s.openai(client), t.flush);
