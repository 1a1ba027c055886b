#!/usr/bin/env bash
# The provider refuses a call of a Mastra agent with 429. The exported span of the model call, and
# those of the step and the generation above it, have status OK (code 1); only the agent's is an
# error. The failure of the call is told by its finish reason alone, which is a JSON text instead
# of the conventions' array. Whoever counts failed model calls by span status misses them.
# @mastra/otel-exporter 1.4.0, @mastra/core 1.71.0, @mastra/observability 1.17.9, @ai-sdk/openai 3.0.141
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --save-exact @mastra/core@1.71.0 @mastra/observability@1.17.9 @mastra/otel-exporter@1.4.0 @ai-sdk/openai@3.0.141 @opentelemetry/exporter-trace-otlp-http@0.218.0 zod@4.6.7
cat > run.cjs <<'JS'
const http = require('http');
const listen = f => new Promise(done => { const s = http.createServer((q, a) => { let b = ''; q.on('data', d => b += d); q.on('end', () => f(b, a)); }).listen(0, '127.0.0.1', () => done('http://127.0.0.1:' + s.address().port)); });
const { Mastra } = require('@mastra/core/mastra');
const { Agent } = require('@mastra/core/agent');
const { Observability } = require('@mastra/observability');
const { OtelExporter } = require('@mastra/otel-exporter');
const { createOpenAI } = require('@ai-sdk/openai');
(async () => {
  const spans = [];
  const collector = await listen((b, a) => { for (const r of JSON.parse(b).resourceSpans || []) for (const s of r.scopeSpans) spans.push(...s.spans); a.end('{}'); });
  const provider = await listen((b, a) => { a.statusCode = 429; a.setHeader('content-type', 'application/json'); a.end('{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}'); });
  const exporter = new OtelExporter({ provider: { custom: { endpoint: collector + '/v1/traces', protocol: 'http/json' } } });
  const observability = new Observability({ configs: { otel: { serviceName: 'shop', exporters: [exporter] } } });
  const planets = new Agent({ id: 'planets', name: 'planets', instructions: 'Answer.', model: createOpenAI({ apiKey: 'none', baseURL: provider + '/v1' }).chat('gpt-5-mini'), maxRetries: 0 });
  new Mastra({ agents: { planets }, observability, logger: false });
  let failed = false;
  try { await planets.generate('Which planet is the largest?'); } catch { failed = true; }
  await new Promise(done => setTimeout(done, 500));
  await observability.shutdown();
  const value = (s, k) => { const a = s.attributes.find(a => a.key === k); return a && a.value.stringValue; };
  const code = s => s.status && s.status.code || 0;
  const name = { 0: 'unset', 1: 'OK', 2: 'ERROR' };
  const of = op => spans.filter(s => s.attributes.some(a => a.key === 'gen_ai.operation.name' && a.value.stringValue === op)).map(s => name[code(s)] + (value(s, 'gen_ai.response.finish_reasons') ? ' (' + value(s, 'gen_ai.response.finish_reasons') + ')' : '')).join();
  console.log('call failed: ' + failed + '; chat: ' + of('chat') + '; invoke_agent: ' + of('invoke_agent'));
  process.exit(0);
})();
JS
got=$(node run.cjs)
echo "$got"
[ "$got" = 'call failed: true; chat: OK (["error"]); invoke_agent: ERROR' ] || { echo "the behavior has changed"; exit 1; }
