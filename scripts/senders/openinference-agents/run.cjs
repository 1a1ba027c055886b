const s = require('../support.cjs');
const t = s.telemetry(require);
const agents = require('@openai/agents');
const { OpenAIAgentsInstrumentation } = require('@arizeai/openinference-instrumentation-openai-agents');
const OpenAI = require('openai');
new OpenAIAgentsInstrumentation({ tracerProvider: t.provider }).manuallyInstrument(agents);
const client = new OpenAI.OpenAI({ apiKey: s.key, baseURL: s.MOCK + '/v1', maxRetries: 0 });
s.run(async () => {
  const model = s.CASE === 'responses' ? new agents.OpenAIResponsesModel(client, 'gpt-5-mini') : new agents.OpenAIChatCompletionsModel(client, 'gpt-5-mini');
  const o = { name: 'planets', model };
  if (s.CASE === 'tool') {
    o.tools = [agents.tool({ name: 'weather', description: 'Weather of a city', parameters: s.city, strict: false, execute: () => 'sunny' })];
    o.toolUseBehavior = 'stop_on_first_tool';
  }
  const out = await agents.run(new agents.Agent(o), s.question, { stream: s.streams });
  if (s.streams) for await (const _ of out);
}, async () => { await agents.getGlobalTraceProvider().forceFlush(); await t.flush(); });
