#!/usr/bin/env bash
# @pydantic/genai-prices 0.1.8 prices deepseek-v4-pro by hours of the day. A price there has either
# a start date or hours, not both, and no days of the week. So a request of a Sunday, and one from
# before the peak hours existed (2026-08-16 16:00 UTC), cost twice or three times what the provider
# charged. Whoever computes past costs with it needs another source for these models.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --save-exact @pydantic/genai-prices@0.1.8
cat > run.mjs <<'JS'
import { calcPrice } from '@pydantic/genai-prices';
const at = time => calcPrice({ input_tokens: 1_000_000, output_tokens: 0 }, 'deepseek-v4-pro', { providerId: 'deepseek', timestamp: new Date(time) }).total_price;
const shown = { monday: at('2026-11-30T02:00:00Z'), sunday: at('2026-11-29T02:00:00Z'), before: at('2026-08-10T02:00:00Z'), beforeAtNoon: at('2026-08-10T12:00:00Z') };
console.log(JSON.stringify(shown));
if (shown.monday !== 1.32 || shown.sunday !== 1.32 || shown.before !== 1.32 || shown.beforeAtNoon !== 0.435) { console.error('the behavior has changed'); process.exit(1); }
JS
node run.mjs
