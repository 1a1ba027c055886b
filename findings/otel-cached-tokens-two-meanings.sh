#!/usr/bin/env bash
# Two instrumentations report the same Anthropic response under the same attribute,
# gen_ai.usage.input_tokens, with different numbers.
#
# The fake provider answers with input_tokens 100, cache_read_input_tokens 800 and
# cache_creation_input_tokens 200.
#   @ai-sdk/otel 1.0.173 (ai 7.0.173)               reports 1100: cached tokens are inside
#   @traceloop/instrumentation-anthropic 0.27.0     reports 100:  cached tokens are beside
# Whoever computes a price or a total from the attribute needs the instrumentation scope.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat > fake.cjs <<'JS'
const http = require('http');
module.exports = () => new Promise(done => {
  const server = http.createServer((q, a) => { q.resume(); q.on('end', () => {
    a.setHeader('content-type', 'application/json');
    a.end(JSON.stringify({ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-sonnet-4-5', content: [{ type: 'text', text: 'Jupiter.' }], stop_reason: 'end_turn', stop_sequence: null, usage: { input_tokens: 100, cache_read_input_tokens: 800, cache_creation_input_tokens: 200, output_tokens: 60 } }));
  }); }).listen(0, '127.0.0.1', () => done({ url: 'http://127.0.0.1:' + server.address().port, close: () => server.close() }));
});
JS
mkdir ai traceloop
(cd ai && npm init -y >/dev/null && npm install --silent --no-audit --no-fund --save-exact ai@7.0.173 @ai-sdk/otel@1.0.173 @ai-sdk/anthropic@4.0.105 @opentelemetry/api@1.9.0 @opentelemetry/sdk-trace-node@2.2.0 zod@4.6.7)
(cd traceloop && npm init -y >/dev/null && npm install --silent --no-audit --no-fund --save-exact @traceloop/instrumentation-anthropic@0.27.0 @anthropic-ai/sdk@0.137.0 @opentelemetry/api@1.9.0 @opentelemetry/sdk-trace-node@2.2.0)
cat > ai/run.cjs <<'JS'
const { NodeTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-node');
const spans = new InMemorySpanExporter();
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }).register();
const { generateText, registerTelemetry } = require('ai');
const { OpenTelemetry } = require('@ai-sdk/otel');
const { createAnthropic } = require('@ai-sdk/anthropic');
registerTelemetry(new OpenTelemetry());
(async () => {
  const fake = await require('../fake.cjs')();
  await generateText({ model: createAnthropic({ apiKey: 'none', baseURL: fake.url + '/v1' })('claude-sonnet-4-5'), prompt: 'Which planet is the largest?' });
  fake.close();
  console.log(spans.getFinishedSpans().filter(s => s.attributes['gen_ai.operation.name'] === 'chat').map(s => s.attributes['gen_ai.usage.input_tokens'] + ' of which cached ' + s.attributes['gen_ai.usage.cache_read.input_tokens']).join());
})();
JS
cat > traceloop/run.cjs <<'JS'
const { NodeTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-node');
const spans = new InMemorySpanExporter();
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }).register();
const { AnthropicInstrumentation } = require('@traceloop/instrumentation-anthropic');
const Anthropic = require('@anthropic-ai/sdk');
new AnthropicInstrumentation().manuallyInstrument(Anthropic);
(async () => {
  const fake = await require('../fake.cjs')();
  await new Anthropic.Anthropic({ apiKey: 'none', baseURL: fake.url }).messages.create({ model: 'claude-sonnet-4-5', max_tokens: 64, messages: [{ role: 'user', content: 'Which planet is the largest?' }] });
  fake.close();
  console.log(spans.getFinishedSpans().filter(s => s.instrumentationScope.name.startsWith('@traceloop')).map(s => s.attributes['gen_ai.usage.input_tokens'] + ' of which cached ' + s.attributes['gen_ai.usage.cache_read.input_tokens']).join());
})();
JS
inside=$(node ai/run.cjs); beside=$(node traceloop/run.cjs)
echo "@ai-sdk/otel 1.0.173: $inside"; echo "@traceloop/instrumentation-anthropic 0.27.0: $beside"
[ "$inside" = "1100 of which cached 800" ] && [ "$beside" = "100 of which cached 800" ] || { echo "the behavior has changed"; exit 1; }
