#!/usr/bin/env bash
# Plain curl against a running gateway: statuses, headers, the end of streams.
#   GATEWAY_URL=http://127.0.0.1:8787/v1 GATEWAY_KEY=... GATEWAY_ADMIN_KEY=... scripts/clients/curl.sh
set -uo pipefail
: "${GATEWAY_URL:?}" "${GATEWAY_KEY:?}" "${GATEWAY_ADMIN_KEY:?}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
checks=0 failures=0

# ask METHOD PATH [curl arguments]: status in $status, $dir/head, $dir/body
ask() {
	local method=$1 path=$2
	shift 2
	status=$(curl -sS -N --max-time 20 -X "$method" -D "$dir/head" -o "$dir/body" -w '%{http_code}' "$GATEWAY_URL$path" "$@" 2>"$dir/err")
	curl_exit=$?
	tr -d '\r' <"$dir/head" | tr '[:upper:]' '[:lower:]' >"$dir/headers"
}

fail() {
	failures=$((failures + 1))
	echo "FAIL $name: $1" >&2
	sed 's/^/    /' "$dir/headers" >&2
	head -c 600 "$dir/body" >&2
	echo >&2
}

status_is() { checks=$((checks + 1)); [ "$status" = "$1" ] || fail "status $status, want $1"; }
header_has() { checks=$((checks + 1)); grep -qE "^$1: *$2" "$dir/headers" || fail "no header $1: $2"; }
header_not() { checks=$((checks + 1)); ! grep -qE "^$1:" "$dir/headers" || fail "header $1 is there"; }
body_has() { checks=$((checks + 1)); grep -qF -- "$1" "$dir/body" || fail "the body lacks $1"; }
body_not() { checks=$((checks + 1)); ! grep -qF -- "$1" "$dir/body" || fail "the body has $1"; }
last_line_is() { checks=$((checks + 1)); [ "$(grep -v '^[[:space:]]*$' "$dir/body" | tail -n 1)" = "$1" ] || fail "the stream does not end with $1"; }

key=(-H "Authorization: Bearer $GATEWAY_KEY")
json=(-H 'Content-Type: application/json')
mock=("${key[@]}" "${json[@]}" -H 'x-gateway-provider: @mock')
mockAnthropic=("${key[@]}" "${json[@]}" -H 'x-gateway-provider: @mock-anthropic')
chat() { printf '{"model":"%s","messages":[{"role":"user","content":"%s"}]%s}' "${3:-gpt-4o-mini}" "$1" "${2:-}"; }
message() { printf '{"model":"%s","max_tokens":100,"messages":[{"role":"user","content":"%s"}]%s}' "${3:-claude-sonnet-4-5}" "$1" "${2:-}"; }

name='health'
status=$(curl -sS --max-time 5 -D "$dir/head" -o "$dir/body" -w '%{http_code}' "${GATEWAY_URL%/v1}/healthz")
tr -d '\r' <"$dir/head" >"$dir/headers"
status_is 200

name='chat'
ask POST /chat/completions "${mock[@]}" -d "$(chat 'mock: say=Hello')"
status_is 200
header_has content-type application/json
header_has x-gateway-trace-id '[0-9a-f-]+'
header_has x-gateway-provider openai
header_has x-gateway-retry-attempt-count 0
header_has x-gateway-cache-status disabled
header_has x-gateway-last-used-option-index config
body_has '"content":"Hello"'

name='key in x-gateway-api-key, provider in the model'
ask POST /chat/completions "${json[@]}" -H "x-gateway-api-key: $GATEWAY_KEY" -d "$(chat 'mock: say=Hello' '' '@mock/gpt-4o-mini')"
status_is 200
body_has '"content":"Hello"'

name='the trace id that was sent comes back'
ask POST /chat/completions "${mock[@]}" -H 'x-gateway-trace-id: trace-of-curl' -d "$(chat Hi)"
status_is 200
header_has x-gateway-trace-id 'trace-of-curl$'

name='stream'
ask POST /chat/completions "${mock[@]}" -d "$(chat 'mock: chunks=5' ',"stream":true,"stream_options":{"include_usage":true}')"
status_is 200
header_has content-type text/event-stream
header_not content-length
body_has '"usage":{"prompt_tokens"'
last_line_is 'data: [DONE]'

name='stream without usage'
ask POST /chat/completions "${mock[@]}" -d "$(chat 'mock: chunks=5' ',"stream":true')"
status_is 200
body_not '"usage":{'
last_line_is 'data: [DONE]'

name='stream of another dialect'
ask POST /chat/completions "${mockAnthropic[@]}" -d "$(chat 'mock: chunks=5' ',"stream":true,"stream_options":{"include_usage":true}' claude-sonnet-4-5)"
status_is 200
header_has content-type text/event-stream
body_has '"object":"chat.completion.chunk"'
body_has '"usage":{'
body_not 'event: '
last_line_is 'data: [DONE]'

name='Anthropic stream'
ask POST /messages "${mockAnthropic[@]}" -d "$(message 'mock: chunks=5' ',"stream":true')"
status_is 200
body_has 'event: message_start'
body_not '[DONE]'
last_line_is 'data: {"type":"message_stop"}'

name='Anthropic stream from an OpenAI model'
ask POST /messages "${mock[@]}" -d "$(message 'mock: chunks=5' ',"stream":true' gpt-4o-mini)"
status_is 200
body_has 'event: message_start'
body_has 'event: message_stop'
body_not '[DONE]'

name='an error before a stream is plain JSON'
ask POST /chat/completions "${mock[@]}" -d "$(chat 'mock: status=503' ',"stream":true')"
status_is 503
header_has content-type application/json
body_has '"error"'

name='a stream that the provider cuts does not end well'
ask POST /chat/completions "${mock[@]}" -d "$(chat 'mock: chunks=9 cut=after:4' ',"stream":true')"
body_not '[DONE]'

name='retry-after'
ask POST /chat/completions "${mock[@]}" -d "$(chat 'mock: status=429 retry-after=9')"
status_is 429
header_has retry-after 9

name='no key'
ask POST /chat/completions "${json[@]}" -H 'x-gateway-provider: @mock' -d "$(chat Hi)"
status_is 401
header_has content-type application/json

name='wrong key'
ask POST /chat/completions "${json[@]}" -H 'x-gateway-provider: @mock' -H 'Authorization: Bearer nobody' -d "$(chat Hi)"
status_is 401
body_not nobody

name='no provider'
ask POST /chat/completions "${key[@]}" "${json[@]}" -d "$(chat Hi)"
status_is 400

name='unknown saved provider'
ask POST /chat/completions "${key[@]}" "${json[@]}" -H 'x-gateway-provider: @nothing-of-the-kind' -d "$(chat Hi)"
checks=$((checks + 1))
case $status in 400 | 404) ;; *) fail "status $status" ;; esac

name='body that is not JSON'
ask POST /chat/completions "${mock[@]}" -d '{"model":'
status_is 400

name='wrong content type'
ask POST /chat/completions "${key[@]}" -H 'x-gateway-provider: @mock' -H 'Content-Type: text/plain' -d "$(chat Hi)"
status_is 400

name='duplicate model'
ask POST /chat/completions "${mock[@]}" -d '{"model":"a","messages":[{"role":"user","content":"x"}],"model":"b"}'
status_is 400

name='pass-through keeps path, query and bytes'
printf 'a\000b\377c' >"$dir/bytes"
ask POST '/echo/a%2Fb//c;d?q=%20x&y' "${key[@]}" -H 'x-gateway-provider: @mock' -H 'Content-Type: audio/wav' --path-as-is --data-binary "@$dir/bytes"
status_is 200
body_has '"raw_path":"/v1/echo/a%2Fb//c;d"'
body_has '"raw_query":"q=%20x\u0026y"'
body_has "\"body_sha256\":\"$(sha256sum "$dir/bytes" | cut -d' ' -f1)\""
body_not "$GATEWAY_KEY"

name='pass-through of a download'
ask GET /binary/100000 "${key[@]}" -H 'x-gateway-provider: @mock'
status_is 200
checks=$((checks + 1))
[ "$(wc -c <"$dir/body")" = 100000 ] || fail "$(wc -c <"$dir/body") bytes"

name='administration with the admin key'
ask GET /api-keys -H "x-gateway-api-key: $GATEWAY_ADMIN_KEY"
status_is 200
header_has content-type application/json
body_has '"data"'

name='administration without a key'
ask GET /api-keys
status_is 401

echo "$checks checks, $failures failures"
[ "$failures" -eq 0 ]
