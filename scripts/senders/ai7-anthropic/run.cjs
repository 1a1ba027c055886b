const s = require('../support.cjs');
const t = s.telemetry(require);
const { generateText, streamText, tool, jsonSchema, registerTelemetry } = require('ai');
const { OpenTelemetry } = require('@ai-sdk/otel');
const { createAnthropic } = require('@ai-sdk/anthropic');
registerTelemetry(new OpenTelemetry());
const anthropic = createAnthropic({ apiKey: s.key, baseURL: s.MOCK + '/v1' });
s.run(async () => {
  const o = { model: anthropic('claude-sonnet-4-5'), prompt: s.question, maxRetries: 0, maxOutputTokens: 4096 };
  if (s.CASE === 'cached') {
    delete o.prompt;
    o.allowSystemInMessages = true;
    o.messages = [{ role: 'system', content: s.text.repeat(8), providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } } }, { role: 'user', content: 'Which one is the largest?' }];
    await generateText(o);
  }
  if (s.CASE === 'tool') o.tools = { weather: tool({ description: 'Weather of a city', inputSchema: jsonSchema(s.city) }) };
  if (!s.streams) return generateText(o);
  for await (const _ of streamText({ ...o, onError() {} }).fullStream);
}, t.flush);
