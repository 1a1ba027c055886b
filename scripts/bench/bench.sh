#!/usr/bin/env bash
# The gateway's CPU per request beside a bare reverse proxy, on this machine.
#   scripts/bench/bench.sh [-rounds 3] [-d 2s] [-cells chat1k,stream100] [-check] [-wait 20s]
set -euo pipefail
cd "$(dirname "$0")/../.."
exec go run ./scripts/bench/run "$@"
