#!/usr/bin/env bash
# Runs every fuzz target of the main module for a bounded time each, or with a
# bounded number of new inputs. A package is built once for all its targets, and as
# many packages run at once as there are cores.
#   scripts/fuzz.sh 1m
#   scripts/fuzz.sh 500x
#   scripts/fuzz.sh 1m shared/wire     one package
set -euo pipefail
cd "$(dirname "$0")/.."
bound=${1:-500x}
# What is found on the way steers a search that has time. A few inputs are made from the
# samples whatever is found: for them nothing is compiled anew to count it.
guide=(-fuzz .)
case $bound in *x) [ "${bound%x}" -gt 10000 ] || guide=() ;; esac

# late tells whether the only complaint is that a worker was still busy when the
# time was over, which Go reports as a failure though no input failed.
late() { grep -q '^    context deadline exceeded$' "$1" && ! grep -qE 'Failing input|panic|_test\.go:' "$1"; }

# Inputs that are new are made smaller a bounded number of times: with documents of
# several kilobytes Go would otherwise take a minute for each.

# package runs the targets of the package in a folder, one after the other.
package() {
	local dir=$1 work name
	work=$(mktemp -d)
	trap "rm -rf '$work'" EXIT
	go test -c ${guide[@]+"${guide[@]}"} -vet=off -o "$work/test" "./$dir"
	for name in $(targets "$dir"); do
		for try in 1 2 3; do
			(cd "$dir" && "$work/test" -test.run '^$' -test.fuzz "^$name\$" -test.fuzztime "$bound" -test.fuzzminimizetime 100x -test.parallel 1 -test.fuzzcachedir "$cache/$dir") >"$work/out" 2>&1 && break
			if [ "$try" = 3 ] || ! late "$work/out"; then
				echo "fuzz $dir $name FAILED"
				cat "$work/out"
				return 1
			fi
		done
		echo "fuzz $dir $name"
	done
}

targets() { git grep -hoE '^func Fuzz[A-Za-z0-9_]+' -- "$1/*_test.go" ":!$1/*/*" | sed 's/func //' | sort; }

if [ "${2:-}" = --package ]; then
	cache=$(go env GOCACHE)/fuzz/gateway
	package "$3"
	exit
fi
packages=${2:-$(git grep -lE '^func Fuzz[A-Za-z0-9_]+' -- '*_test.go' | xargs -n1 dirname | sort -u)}
[ -n "$packages" ] || { echo "no fuzz target found"; exit 1; }
xargs -P "$(getconf _NPROCESSORS_ONLN)" -I{} "$0" "$bound" --package {} <<<"$packages"
ran=0
for p in $packages; do ran=$((ran + $(targets "$p" | wc -l))); done
[ "$ran" -gt 0 ] || { echo "no fuzz target found"; exit 1; }
echo "$ran fuzz targets passed"
