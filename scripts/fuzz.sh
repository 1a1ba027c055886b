#!/usr/bin/env bash
# Runs every fuzz target of the main module for a bounded time each.
#   scripts/fuzz.sh 3s
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-3s}
ran=0
while IFS=: read -r file name; do
	echo "fuzz $(dirname "$file") $name"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" "./$(dirname "$file")" >/tmp/fuzz.$$ 2>&1 || { cat /tmp/fuzz.$$; rm -f /tmp/fuzz.$$; exit 1; }
	ran=$((ran + 1))
done < <(git grep -oE 'func Fuzz[A-Za-z0-9_]+' -- '*_test.go' | sed 's/:func /:/' | sort)
rm -f /tmp/fuzz.$$
[ "$ran" -gt 0 ] || { echo "no fuzz target found"; exit 1; }
echo "$ran fuzz targets passed"
