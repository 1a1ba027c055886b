#!/usr/bin/env bash
# With stream_options.include_usage OpenAI sends the usage in a last chunk whose choices are
# empty. Two instrumentations that report usage of whole responses leave it out for streams:
#   @traceloop/instrumentation-openai 0.27.0 (openai 6.49.0)
#   @arizeai/openinference-instrumentation-openai 4.2.7 (openai 7.59.0)
# The application receives the usage; the span has no token counts, so streams look free.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat > call.cjs <<'JS'
const http = require('http');
const chunk = (choices, usage) => 'data: ' + JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'gpt-5-mini', choices, usage }) + '\n\n';
const stream = chunk([{ index: 0, delta: { role: 'assistant', content: 'Jupiter.' }, finish_reason: null }], null) + chunk([{ index: 0, delta: {}, finish_reason: 'stop' }], null) + chunk([], { prompt_tokens: 1000, completion_tokens: 200, total_tokens: 1200 }) + 'data: [DONE]\n\n';
const whole = JSON.stringify({ id: 'c1', object: 'chat.completion', created: 1, model: 'gpt-5-mini', choices: [{ index: 0, message: { role: 'assistant', content: 'Jupiter.' }, finish_reason: 'stop' }], usage: { prompt_tokens: 1000, completion_tokens: 200, total_tokens: 1200 } });
module.exports = async (OpenAI, spans) => {
  const server = http.createServer((q, a) => { let b = ''; q.on('data', d => b += d); q.on('end', () => {
    const streams = JSON.parse(b).stream;
    a.setHeader('content-type', streams ? 'text/event-stream' : 'application/json');
    a.end(streams ? stream : whole);
  }); });
  await new Promise(done => server.listen(0, '127.0.0.1', done));
  const client = new OpenAI({ apiKey: 'none', baseURL: 'http://127.0.0.1:' + server.address().port + '/v1' });
  const body = { model: 'gpt-5-mini', messages: [{ role: 'user', content: 'Which planet is the largest?' }] };
  await client.chat.completions.create(body);
  let seen;
  for await (const c of await client.chat.completions.create({ ...body, stream: true, stream_options: { include_usage: true } })) if (c.usage) seen = c.usage.total_tokens;
  server.close(); server.closeAllConnections();
  await new Promise(done => setTimeout(done, 200));
  const counts = spans.getFinishedSpans().map(s => Object.keys(s.attributes).some(k => /usage\.input_tokens|token_count\.prompt$/.test(k)));
  console.log('application ' + seen + ', span of the whole response ' + counts[0] + ', span of the stream ' + (counts.length > 1 ? counts[1] : 'none'));
};
JS
mkdir traceloop openinference
(cd traceloop && npm init -y >/dev/null && npm install --silent --no-audit --no-fund --save-exact @traceloop/instrumentation-openai@0.27.0 openai@6.49.0 @opentelemetry/api@1.9.0 @opentelemetry/sdk-trace-node@2.2.0)
(cd openinference && npm init -y >/dev/null && npm install --silent --no-audit --no-fund --save-exact @arizeai/openinference-instrumentation-openai@4.2.7 openai@7.59.0 @opentelemetry/api@1.9.0 @opentelemetry/sdk-trace-node@2.2.0)
head='const { NodeTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } = require("@opentelemetry/sdk-trace-node");
const spans = new InMemorySpanExporter();
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }).register();
const OpenAI = require("openai");'
printf '%s\n' "$head" 'const { OpenAIInstrumentation } = require("@traceloop/instrumentation-openai"); new OpenAIInstrumentation().manuallyInstrument(OpenAI.OpenAI); require("../call.cjs")(OpenAI.OpenAI, spans);' > traceloop/run.cjs
printf '%s\n' "$head" 'const { OpenAIInstrumentation } = require("@arizeai/openinference-instrumentation-openai"); new OpenAIInstrumentation().manuallyInstrument(OpenAI); require("../call.cjs")(OpenAI.OpenAI, spans);' > openinference/run.cjs
one=$(node traceloop/run.cjs); two=$(node openinference/run.cjs)
echo "@traceloop/instrumentation-openai 0.27.0: $one"; echo "@arizeai/openinference-instrumentation-openai 4.2.7: $two"
want='application 1200, span of the whole response true, span of the stream false'
[ "$one" = "$want" ] && [ "$two" = "$want" ] || { echo "the behavior has changed"; exit 1; }
