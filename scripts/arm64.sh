#!/usr/bin/env bash
# Runs tests of the main module for arm64 under qemu-aarch64-static, without the
# race detector.
#   scripts/arm64.sh ./shared/...
#
# It is also what runs each test binary. The system cannot start one by itself,
# as tests of killed processes do: once the emulator has mapped the binary, a
# script that calls the emulator takes its place.
set -euo pipefail
if [ -z "${ARM64_BINARY:-}" ]; then
  cd "$(dirname "$0")/.."
  export GOARCH=arm64 CGO_ENABLED=0 ARM64_BINARY=1
  exec go test -p 1 -timeout 30m -exec "$PWD/scripts/arm64.sh" "$@"
fi
binary=$1; shift
cp "$binary" "$binary.arm64"
qemu-aarch64-static "$binary" "$@" &
emulator=$!
trap 'kill -QUIT $emulator' QUIT INT TERM
while kill -0 $emulator 2>/dev/null && ! grep -qF "$binary" /proc/$emulator/maps; do sleep 0.01; done
printf '#!/bin/bash\nexec qemu-aarch64-static -0 "$0" "%s.arm64" "$@"\n' "$binary" >"$binary.script"
chmod +x "$binary.script"
mv -f "$binary.script" "$binary"
wait $emulator
