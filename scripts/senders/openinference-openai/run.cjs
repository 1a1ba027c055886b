const s = require('../support.cjs');
const t = s.telemetry(require);
const { OpenAIInstrumentation } = require('@arizeai/openinference-instrumentation-openai');
const { setSession, setUser } = require('@arizeai/openinference-core');
const { context } = require('@opentelemetry/api');
const OpenAI = require('openai');
new OpenAIInstrumentation().manuallyInstrument(OpenAI);
const client = new OpenAI.OpenAI({ apiKey: s.key, baseURL: s.MOCK + '/v1', maxRetries: 0 });
s.run(() => context.with(setUser(setSession(context.active(), { sessionId: 'session-1' }), { userId: 'ada' }), () => s.openai(client)), t.flush);
