#!/usr/bin/env bash
# The first ten minutes, from an empty machine to a governed request. Runs in an empty folder
# of its own, against the built-in mock provider. GATEWAY_BINARY names a program that is
# built already; without it, it is built from this repository.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$dir"' EXIT
step() { printf '\n== %s\n' "$*"; }
fail() { printf 'quickstart: %s\n' "$*" >&2; exit 1; }

step "0-1: build and start"
gateway=${GATEWAY_BINARY:-}
if [ -z "$gateway" ]; then
  gateway=$dir/gateway
  (cd "$root" && go build -o "$gateway" ./local)
fi
unset GATEWAY_URL GATEWAY_API_KEY GATEWAY_ADMIN_KEY GATEWAY_WORKSPACE_KEY
"$gateway" serve -addr 127.0.0.1:0 -data "$dir/data" > "$dir/log" 2>&1 &
pid=$!
for _ in $(seq 600); do
  grep -q '^gateway ready on' "$dir/log" && break
  kill -0 "$pid" 2>/dev/null || { cat "$dir/log"; fail "the gateway did not start"; }
  sleep 0.1
done
export HOME=$dir/home
mkdir -p "$HOME"
GATEWAY_URL=$(sed -n 's|^gateway ready on \(.*\)/v1$|\1|p' "$dir/log")
admin=$(sed -n 's/^admin key *//p' "$dir/log")
GATEWAY_API_KEY=$(sed -n 's/^workspace key *//p' "$dir/log")
export GATEWAY_URL GATEWAY_API_KEY
[ -n "$admin" ] && [ -n "$GATEWAY_API_KEY" ] || fail "no keys were printed"
echo "ready"

# ask KEY [curl arguments]: prints the status; the response is in $dir/out, its head in $dir/head.
ask() {
  local key=$1
  shift
  curl -sS -o "$dir/out" -D "$dir/head" -w '%{http_code}' "$GATEWAY_URL/v1/chat/completions" \
    -H "x-gateway-api-key: $key" -H 'content-type: application/json' "$@"
}
hello='{"model": "@mock/gpt-4o-mini", "max_tokens": 16, "messages": [{"role": "user", "content": "Hello"}]}'

step "1: nothing is open without a key"
[ "$(ask no-such-key -d "$hello")" = 401 ] || fail "a request with an unknown key was accepted"
echo "401"

step "2: the way, the key and the providers"
"$gateway" doctor

step "3: the first request, priced and explained"
[ "$(ask "$GATEWAY_API_KEY" -d "$hello")" = 200 ] || { cat "$dir/out"; fail "the first request failed"; }
trace=$(sed -n 's/^X-Gateway-Trace-Id: *\([^[:space:]]*\).*/\1/ip' "$dir/head")
for _ in $(seq 100); do
  "$gateway" explain "$trace" > "$dir/explained" 2>/dev/null && break
  sleep 0.1
done
cat "$dir/explained"
grep -q 'status 200, 0\.0' "$dir/explained" || fail "the request has no price"

step "4: a budget that trips"
limited=$(curl -sS "$GATEWAY_URL/v1/api-keys/workspace/service" -H "x-gateway-api-key: $admin" -H 'content-type: application/json' \
  -d '{"name": "limited", "workspace_id": "default", "scopes": ["completions.write"], "usage_limits": {"type": "cost", "credit_limit": 0.0001}}' | sed -n 's/.*"key":"\([^"]*\)".*/\1/p')
status=
for _ in $(seq 50); do
  status=$(ask "$limited" -d "$hello")
  [ "$status" = 200 ] || break
done
[ "$status" = 412 ] || fail "the budget did not trip: $status"
echo "412 when 0.0001 USD were spent"

step "5: a fallback that answers"
status=$(ask "$GATEWAY_API_KEY" -d '{"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Hello"}]}' \
  -H 'x-gateway-config: {"strategy": {"mode": "fallback"}, "targets": [{"provider": "openai", "api_key": "sk-example", "custom_host": "http://127.0.0.1:9/v1"}, {"provider": "@mock"}]}')
[ "$status" = 200 ] || { cat "$dir/out"; fail "the fallback did not answer"; }
echo "the second target answered"

step "6: a coding agent through the gateway, and back"
GATEWAY_API_KEY=$admin "$gateway" setup codex --yes
grep -q "$GATEWAY_URL/v1" "$HOME/.codex/config.toml" || fail "setup wrote nothing"
GATEWAY_API_KEY=$admin "$gateway" setup codex --undo --yes
[ ! -e "$HOME/.codex" ] || fail "undo left something"

step "8: import of another gateway, as a dry run"
cat > "$dir/litellm.yaml" <<'YAML'
model_list:
  - model_name: fast
    litellm_params:
      model: openai/gpt-4o-mini
      api_key: os.environ/OPENAI_KEY
YAML
"$gateway" validate "$dir/litellm.yaml"
OPENAI_KEY=sk-example GATEWAY_API_KEY=$admin "$gateway" import litellm "$dir/litellm.yaml"

printf '\nquickstart: done\n'
