#!/usr/bin/env bash
# Builds every function into dist/<name>/bootstrap, ready to be deployed, and the
# container's binary into dist/container/gateway.
#   scripts/lambdas.sh            for Lambda on arm64
#   GOARCH=amd64 scripts/lambdas.sh --out DIR [name...]   elsewhere, some only
set -euo pipefail
cd "$(dirname "$0")/.."
out=dist
if [ "${1:-}" = --out ]; then out=$2; shift 2; fi
# Two that build into one folder take turns: the second finds all of it up to date.
if command -v flock >/dev/null; then
  mkdir -p "$out"
  exec 9>"$out/.lock"
  flock 9
fi
export GOOS="${GOOS:-linux}" GOARCH="${GOARCH:-arm64}" CGO_ENABLED=0
build=(go build -tags lambda.norpc -trimpath -ldflags=-s\ -w)
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  for main in functions/*/lambda; do names+=("$(basename "$(dirname "$main")")"); done
  names+=(container)
fi
for name in "${names[@]}"; do
  if [ "$name" = container ]; then
    "${build[@]}" -o "$out/container/gateway" ./functions/container
    cp functions/container/Dockerfile "$out/container/"
    mkdir -p "$out/container/journal" && : >"$out/container/journal/.keep" # copies leave empty folders out
  else
    "${build[@]}" -o "$out/$name/bootstrap" "./functions/$name/lambda"
  fi
done
