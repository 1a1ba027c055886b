#!/usr/bin/env bash
# Checks a deployed gateway from outside: what no test on one machine can show.
#   scripts/smoke.sh https://gateway.example.com WORKSPACE_KEY '@provider/model'
set -euo pipefail
[ $# -eq 3 ] || { sed -n '2,3p' "$0"; exit 2; }
base=$1/v1 key=$2 model=$3
failed=0
check() { # NAME EXPECTED GOT
	if [[ "$3" == $2 ]]; then echo "ok    $1"; else echo "FAIL  $1: got $3, want $2"; failed=1; fi
}
ask() { curl -sS -m 120 -H "x-gateway-api-key: $key" -H 'content-type: application/json' "$@"; }
body() { printf '{"model":"%s","stream":%s,"messages":[{"role":"user","content":"Count from 1 to 20."}]}' "$model" "$1"; }

check "no key is 401" 401 "$(curl -sS -m 30 -o /dev/null -w '%{http_code}' "$base/models")"
check "plain http is refused or redirected" '30?|403|000' "$(curl -sS -m 10 -o /dev/null -w '%{http_code}' "${base/https:/http:}/models" || true)" || true
check "models is 200" 200 "$(ask -o /dev/null -w '%{http_code}' "$base/models")"
check "chat is 200" 200 "$(ask -o /dev/null -w '%{http_code}' -d "$(body false)" "$base/chat/completions")"
stream=$(ask -N -w '\n%{time_starttransfer} %{time_total}' -d "$(body true)" "$base/chat/completions")
check "a stream ends with [DONE]" '*DONE*' "$(grep '^data:' <<<"$stream" | tail -1)"
echo "      first byte and whole stream, seconds: $(tail -1 <<<"$stream")"
big=$(head -c 4000000 /dev/zero | tr '\0' 'a')
check "a body above 3.5 MB reaches the container" '4??' "$(printf '{"model":"%s","messages":[{"role":"x","content":"%s"}]}' "$model" "$big" | ask -o /dev/null -w '%{http_code}' --data-binary @- "$base/chat/completions")"
check "pass-through keeps odd paths" '[24]??' "$(ask --path-as-is -o /dev/null -w '%{http_code}' -H "x-gateway-provider: ${model%%/*}" "$base/proxy/models//x;y")"
exit $failed
