const s = require('../support.cjs');
const t = s.telemetry(require);
const { Anthropic } = require('@anthropic-ai/sdk');
const client = new Anthropic({ apiKey: s.key, baseURL: s.MOCK, maxRetries: 0 });
s.run(() => s.anthropic(client), t.flush);
