#!/usr/bin/env bash
# Synthesises the CloudFormation templates into cdk.out, without a network:
#   scripts/synth.sh [-c container=off] [-c chat=container] ...
# The CDK app is run directly; deploying needs the CDK command line: npx cdk deploy --all
# (pinned in infra/package-lock.json).
set -euo pipefail
cd "$(dirname "$0")/.."
[ -n "${SKIP_BUILD:-}" ] && [ -e dist/chat/bootstrap ] || scripts/lambdas.sh
context=$(node -e '
  const c = require("./cdk.json").context;
  const a = process.argv.slice(1);
  for (let i = 0; i + 1 < a.length; i += 2) {
    if (a[i] !== "-c") throw new Error("usage: scripts/synth.sh [-c name=value] ...");
    const at = a[i + 1].indexOf("=");
    c[a[i + 1].slice(0, at)] = a[i + 1].slice(at + 1);
  }
  process.stdout.write(JSON.stringify(c));' -- "$@")
rm -rf cdk.out
cd infra
CDK_OUTDIR="$PWD/../cdk.out" CDK_CONTEXT_JSON="$context" JSII_DEPRECATED=quiet JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=1 \
  env -u GOOS -u GOARCH go run .
ls -1 ../cdk.out/*.template.json
