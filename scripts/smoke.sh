#!/usr/bin/env bash
# Checks a deployed gateway from outside: what no test on one machine can show.
#   scripts/smoke.sh ADDRESS WORKSPACE_KEY '@provider/model'
#       ADDRESS is what cdk deploy prints, such as https://d123.cloudfront.net/v1
#   scripts/smoke.sh --setup NAME MODEL ['PROVIDER']
#       makes the first keys of a fresh installation (context name), with the AWS
#       command line, writes them to NAME-keys.json and checks it. PROVIDER is saved
#       first: {"provider":"openai","key":"sk-..."}; without it MODEL is @slug/model.
set -euo pipefail
usage() { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
say() { echo "smoke: $*" >&2; exit 1; }
member() { tr -d '\n' <"$2" | sed -n 's/.*"'"$1"'" *: *"\([^"]*\)".*/\1/p'; }

# setup NAME MODEL [PROVIDER] sets base, key and model.
setup() {
  local name=$1 keys=$1-keys.json function state file slug
  output() { aws cloudformation describe-stacks --stack-name "$1" --query "Stacks[0].Outputs[?OutputKey=='$2'].OutputValue" --output text; }
  [ ! -e "$keys" ] || say "$keys already exists: give its workspace_key to scripts/smoke.sh ADDRESS WORKSPACE_KEY MODEL"
  base=$(output "$name-edge" Address) && function=$(output "$name-workers" SetupFunction) || say "the stacks $name-edge and $name-workers must be deployed; AWS_REGION is their region"
  umask 077
  file=$(mktemp)
  state=$(aws lambda invoke --function-name "$function" --cli-binary-format raw-in-base64-out --payload '{"task":"setup"}' "$file")
  if [[ $state == *FunctionError* ]]; then member errorMessage "$file" >&2; rm -f "$file"; exit 1; fi
  mv "$file" "$keys"
  echo "first keys are in $keys"
  key=$(member workspace_key "$keys") model=$2
  [ -n "$key" ] || say "$keys holds no keys"
  if [ $# -eq 3 ]; then
    file=$(mktemp)
    curl -sS -m 30 -o "$file" -H "x-gateway-api-key: $(member admin_key "$keys")" -H 'content-type: application/json' \
      -d '{"name":"Smoke test","workspace_id":"default",'"${3#*\{}" "$base/virtual-keys"
    slug=$(member slug "$file")
    [ -n "$slug" ] || say "the provider is refused: $(cat "$file")"
    model="@$slug/$2"
  fi
}

if [ "${1:-}" = --setup ]; then
  [ $# -eq 3 ] || [ $# -eq 4 ] || usage
  shift
  setup "$@"
else
  [ $# -eq 3 ] || usage
  base=$1 key=$2 model=$3
fi
base=${base%/} base=${base%/v1}/v1
failed=0
check() { # NAME EXPECTED GOT
  if [[ "$3" == $2 ]]; then echo "ok    $1"; else echo "FAIL  $1: got $3, want $2"; failed=1; fi
}
ask() { curl -sS -m 120 -H "x-gateway-api-key: $key" -H 'content-type: application/json' "$@"; }
body() { printf '{"model":"%s","stream":%s,"messages":[{"role":"user","content":"Count from 1 to 20."}]}' "$model" "$1"; }

check "no key is 401" 401 "$(curl -sS -m 30 -o /dev/null -w '%{http_code}' "$base/models")"
if [[ $base == https:* ]]; then
  check "plain http is refused or redirected" '30?|403|000' "$(curl -sS -m 10 -o /dev/null -w '%{http_code}' "${base/https:/http:}/models" 2>/dev/null || true)"
fi
check "models is 200" 200 "$(ask -o /dev/null -w '%{http_code}' "$base/models")"
check "chat is 200" 200 "$(ask -o /dev/null -w '%{http_code}' -d "$(body false)" "$base/chat/completions")"
stream=$(ask -N -w '\n%{time_starttransfer} %{time_total}' -d "$(body true)" "$base/chat/completions")
check "a stream ends with [DONE]" '*DONE*' "$(grep '^data:' <<<"$stream" | tail -1)"
echo "      first byte and whole stream, seconds: $(tail -1 <<<"$stream")"
# The container reads it and finds the role wrong; without one it is a 413.
big=$(head -c 4000000 /dev/zero | tr '\0' 'a')
large=$(printf '{"model":"%s","messages":[{"role":"x","content":"%s"}]}' "$model" "$big" | ask -w ' %{http_code}' --data-binary @- "$base/chat/completions")
check "a body above 3.5 MB is answered by the gateway" '*"code"* 4??' "$large"
check "pass-through keeps odd paths" '[24]??' "$(ask --path-as-is -o /dev/null -w '%{http_code}' -H "x-gateway-provider: ${model%%/*}" "$base/proxy/models//x;y")"
exit $failed
