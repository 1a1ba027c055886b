#!/usr/bin/env bash
# Prints a pattern of the tests below the given paths whose comment ends with //lane:NAME.
set -euo pipefail
lane=$1
shift
grep -rhA1 --include='*_test.go' -E '^//lane:' "$@" |
  awk -v lane="//lane:$lane" '
    $0 == lane { in_lane = 1; next }
    /^func / { if (in_lane) { sub(/^func /, ""); sub(/\(.*/, ""); printf "%s%s", n++ ? "|" : "^(", $0 } in_lane = 0; next }
    /^--$/ { in_lane = 0 }
    END { if (!n) exit 1; print ")$" }'
