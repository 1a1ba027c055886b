const s = require('../support.cjs');
const { Mastra } = require('@mastra/core/mastra');
const { Agent } = require('@mastra/core/agent');
const { Observability } = require('@mastra/observability');
const { OtelExporter } = require('@mastra/otel-exporter');
const { createOpenAI } = require('@ai-sdk/openai');
const openai = createOpenAI({ apiKey: s.key, baseURL: s.MOCK + '/v1' });
const exporter = new OtelExporter({ provider: { custom: { endpoint: s.COLLECTOR + '/v1/traces', protocol: 'http/json' } } });
const observability = new Observability({ configs: { otel: { serviceName: 'shop', exporters: [exporter] } } });
const planets = new Agent({ id: 'planets', name: 'planets', instructions: 'Answer.', model: openai.chat('gpt-5-mini'), maxRetries: 0 });
const mastra = new Mastra({ agents: { planets }, observability, logger: false });
s.run(async () => {
  const agent = mastra.getAgent('planets');
  const o = { tracingOptions: { metadata: { userId: 'ada', sessionId: 'session-1' } } };
  if (!s.streams) return agent.generate(s.question, o);
  const out = await agent.stream(s.question, o);
  for await (const _ of out.textStream);
}, async () => { await new Promise(r => setTimeout(r, 500)); await observability.shutdown(); });
