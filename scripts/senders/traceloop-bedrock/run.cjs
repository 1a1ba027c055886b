const s = require('../support.cjs');
const t = s.telemetry(require);
const { registerInstrumentations } = require('@opentelemetry/instrumentation');
const { BedrockInstrumentation } = require('@traceloop/instrumentation-bedrock');
registerInstrumentations({ instrumentations: [new BedrockInstrumentation()] });
const aws = require('@aws-sdk/client-bedrock-runtime');
const { NodeHttpHandler } = require('@smithy/node-http-handler');
const client = new aws.BedrockRuntimeClient({ region: 'us-east-1', endpoint: s.MOCK, maxAttempts: 1, requestHandler: new NodeHttpHandler(), token: { token: s.key }, authSchemePreference: ['httpBearerAuth'] });
const modelId = 'anthropic.claude-sonnet-4-5-20250929-v1:0';
s.run(async () => {
  if (s.CASE === 'converse') return client.send(new aws.ConverseCommand({ modelId, messages: [{ role: 'user', content: [{ text: s.text }] }] }));
  const body = { anthropic_version: 'bedrock-2023-05-31', max_tokens: 4096, messages: [{ role: 'user', content: s.question }] };
  if (s.CASE === 'tool') body.tools = [{ name: 'weather', description: 'Weather of a city', input_schema: s.city }];
  const o = { modelId, contentType: 'application/json', accept: 'application/json', body: JSON.stringify(body) };
  if (!s.streams) return client.send(new aws.InvokeModelCommand(o));
  const out = await client.send(new aws.InvokeModelWithResponseStreamCommand(o));
  for await (const _ of out.body);
}, t.flush);
