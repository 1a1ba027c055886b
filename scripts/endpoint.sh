#!/usr/bin/env bash
# Checks that the gateway works with what AWS_ENDPOINT_URL leads to, such as
# LocalStack or scripts/emulators: the contracts of stores, queues, blobs and keys,
# then a gateway of the real function binaries on it, which the smoke test asks.
#   AWS_ENDPOINT_URL=http://127.0.0.1:4566 scripts/endpoint.sh [--deploy]
# --deploy also deploys the stacks of tables, queues and workers there, with the
# CDK's command line (npm ci --prefix infra).
set -euo pipefail
cd "$(dirname "$0")/.."
: "${AWS_ENDPOINT_URL:?leads nowhere: start LocalStack (make localstack) or go run ./scripts/emulators}"
export AWS_REGION=${AWS_REGION:-us-east-1} AWS_ACCESS_KEY_ID=${AWS_ACCESS_KEY_ID:-test} AWS_SECRET_ACCESS_KEY=${AWS_SECRET_ACCESS_KEY:-test}

echo "== contracts"
go test -count=1 -timeout 20m -run '^TestContract$' ./shared/store/dynamo
go test -count=1 -timeout 20m -run '^TestContractAtEndpoint$' -v ./shared/queue/sqs ./shared/blob/s3 ./shared/seal/kms | grep -E '^(---|ok|FAIL|panic)'

if [ "${1:-}" = --deploy ]; then
  echo "== tables, queues and workers"
  scripts/lambdas.sh
  cdk=(npx --prefix infra cdk)
  "${cdk[@]}" bootstrap "aws://000000000000/$AWS_REGION"
  "${cdk[@]}" deploy Data Workers --require-approval never -c container=off -c firewall=off -c dashboard=off -c shift=off -c "region=$AWS_REGION"
fi

echo "== smoke"
data=$(mktemp -d)
export GATEWAY_ADMIN_KEY=admin-key-of-the-smoke-test GATEWAY_WORKSPACE_KEY=workspace-key-of-the-smoke-test
# What a run before this one has left would have other keys.
export GATEWAY_TABLE_PREFIX=smoke-$RANDOM-
go build -tags aws -o "$data/gateway" ./local
"$data/gateway" -store aws -lambda -addr 127.0.0.1:0 -data "$data" >"$data/out" 2>"$data/log" &
gateway=$!
trap 'kill $gateway 2>/dev/null && wait $gateway 2>/dev/null; rm -rf "$data"' EXIT
for _ in $(seq 1 1200); do
  grep -q '^gateway ready on' "$data/out" && break
  kill -0 $gateway || { cat "$data/out" "$data/log"; exit 1; }
  sleep 0.5
done
scripts/smoke.sh "$(sed -n 's/^gateway ready on //p' "$data/out")" "$GATEWAY_WORKSPACE_KEY" '@mock/gpt-4o-mini'
