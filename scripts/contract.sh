#!/usr/bin/env bash
# Compares the OpenAPI document with that of the last release. A change that breaks
# clients fails, unless functions/docs/document/breaking.txt lists it with its reason.
#
#   scripts/contract.sh           compare
#   scripts/contract.sh release   keep today's document as that of the release
set -euo pipefail
cd "$(dirname "$0")/.."
dir=functions/docs/document
if [ "${1:-}" = release ]; then
	node -e 'const fs = require("fs"); fs.writeFileSync(process.argv[2], JSON.stringify(JSON.parse(fs.readFileSync(process.argv[1]))) + "\n")' "$dir/openapi.json" "$dir/released.json"
	sed -i '3,$d' "$dir/breaking.txt"
	exit
fi
if sed 1,2d "$dir/breaking.txt" | grep -v -- ' -- .'; then
	echo "$dir/breaking.txt: each line needs a reason behind ' -- '"
	exit 1
fi
go build -C scripts/lint -o ../../bin/oasdiff github.com/oasdiff/oasdiff
bin/oasdiff breaking "$dir/released.json" "$dir/openapi.json" --fail-on ERR --err-ignore "$dir/breaking.txt" ||
	{ echo "these changes break clients: take them back, or list them in $dir/breaking.txt"; exit 1; }
# The comparison itself works: a document without its paths breaks everything.
if bin/oasdiff breaking "$dir/released.json" <(node -e 'const d = JSON.parse(require("fs").readFileSync(process.argv[1])); d.paths = {}; console.log(JSON.stringify(d))' "$dir/openapi.json") --fail-on ERR >/dev/null 2>&1; then
	echo "oasdiff takes an empty document for one that breaks nothing"
	exit 1
fi
