const s = require('../support.cjs');
const t = s.telemetry(require);
const { AnthropicInstrumentation } = require('@traceloop/instrumentation-anthropic');
const Anthropic = require('@anthropic-ai/sdk');
new AnthropicInstrumentation().manuallyInstrument(Anthropic);
const client = new Anthropic.Anthropic({ apiKey: s.key, baseURL: s.MOCK, maxRetries: 0 });
s.run(() => s.anthropic(client), t.flush);
