#!/usr/bin/env bash
# @portkey-ai/gateway 1.15.2, installed from npm and run on Node 20 with hono 4.13.19 and
# @hono/node-server 1.19.19, answers a chat completion, and every stream of the same upstream with
# 500 "Something went wrong": it adds its headers to the response of fetch, whose headers are
# immutable. Clients behind it, and benchmarks of it, need streams turned off (Portkey-AI/gateway#1389).
set -euo pipefail
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts --save-exact @portkey-ai/gateway@1.15.2 hono@4.13.19 @hono/node-server@1.19.19

cat > upstream.cjs <<'JS'
const http = require('node:http')
const chunk = (delta, finish) => `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
http.createServer((req, res) => {
  let body = ''
  req.on('data', (d) => { body += d })
  req.on('end', () => {
    if (JSON.parse(body || '{}').stream) {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      return res.end(chunk({ role: 'assistant', content: 'Hi' }, null) + chunk({}, 'stop') + 'data: [DONE]\n\n')
    }
    res.writeHead(200, { 'content-type': 'application/json' })
    res.end(JSON.stringify({ id: 'c1', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }))
  })
}).listen(18931, '127.0.0.1')
JS
# The gateway listens on all interfaces: here, on loopback only.
cat > loopback.cjs <<'JS'
const net = require('node:net')
const listen = net.Server.prototype.listen
net.Server.prototype.listen = function (port, ...rest) {
  return typeof port === 'number' ? listen.call(this, port, '127.0.0.1', ...rest.filter((f) => typeof f === 'function')) : listen.call(this, port, ...rest)
}
JS
node upstream.cjs &
NODE_ENV=production node --require ./loopback.cjs node_modules/@portkey-ai/gateway/build/start-server.js --headless --port=18932 >gateway.log 2>&1 &
for _ in $(seq 60); do curl -s -o /dev/null http://127.0.0.1:18932/ && break; sleep 0.5; done

ask() {
  curl -s -m 10 -w ' %{http_code}' http://127.0.0.1:18932/v1/chat/completions -H 'content-type: application/json' -H 'authorization: Bearer sk-test' \
    -H 'x-portkey-provider: openai' -H 'x-portkey-custom-host: http://127.0.0.1:18931/v1' \
    -d "{\"model\":\"m\",\"stream\":$1,\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}"
}
plain=$(ask false) stream=$(ask true)
echo "plain:  ${plain##* }"
echo "stream: ${stream##* } ${stream% *}"
grep -m1 -o 'TypeError: immutable' gateway.log || true
[ "${plain##* }" = 200 ] && [ "${stream##* }" = 500 ] && grep -q 'Something went wrong' <<<"$stream" || { echo "the behavior has changed"; exit 1; }
