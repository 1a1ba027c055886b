const s = require('../support.cjs');
(async () => {
  const { OpenInferenceBatchSpanProcessor } = await import('@arizeai/openinference-vercel'); // it has no CommonJS
  const t = s.telemetry(require, { processors: [exporter => new OpenInferenceBatchSpanProcessor({ exporter })] });
  const { generateText, streamText, embed, tool, jsonSchema, registerTelemetry } = require('ai');
  const { OpenTelemetry } = require('@ai-sdk/otel');
  const { createOpenAI } = require('@ai-sdk/openai');
  registerTelemetry(new OpenTelemetry({ usage: true, embedding: true }));
  const openai = createOpenAI({ apiKey: s.key, baseURL: s.MOCK + '/v1' });
  s.run(async () => {
    if (s.CASE === 'embeddings') return embed({ model: openai.embedding('text-embedding-3-small'), value: s.text, maxRetries: 0 });
    const model = s.CASE === 'responses' ? openai.responses('gpt-5-mini') : openai.chat('gpt-5-mini');
    const o = { model, prompt: s.question, maxRetries: 0 };
    if (s.CASE === 'tool') o.tools = { weather: tool({ description: 'Weather of a city', inputSchema: jsonSchema(s.city) }) };
    if (!s.streams) return generateText(o);
    for await (const _ of streamText({ ...o, onError() {} }).fullStream);
  }, t.flush);
})();
