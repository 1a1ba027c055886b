#!/usr/bin/env bash
# tokenlens 1.3.1 adds the price of cached input tokens to the full price of all input tokens,
# although both usage formats that it accepts count cached tokens inside the input.
#
# One million input tokens of gpt-4.1, of which 900,000 come from the cache, cost
# 0.1 x 2.00 + 0.9 x 0.50 = 0.65 USD; @pydantic/genai-prices 0.1.8 says so from the same usage.
# tokenlens says 2.45 = 1.0 x 2.00 + 0.9 x 0.50, for the usage of the AI SDK and for OpenAI's own.
# Who feeds a budget from it stops callers who use the cache at about a quarter of their budget.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --save-exact tokenlens@1.3.1 @pydantic/genai-prices@0.1.8
cat > run.mjs <<'JS'
import { costFromUsage } from 'tokenlens';
import { calcPrice } from '@pydantic/genai-prices';
const id = 'openai:gpt-4.1';
console.log('AI SDK usage', costFromUsage({ id, usage: { inputTokens: 1e6, cachedInputTokens: 9e5, outputTokens: 0 } }));
console.log('OpenAI usage', costFromUsage({ id, usage: { prompt_tokens: 1e6, prompt_tokens_details: { cached_tokens: 9e5 }, completion_tokens: 0 } }));
console.log('genai-prices', calcPrice({ input_tokens: 1e6, cache_read_tokens: 9e5, output_tokens: 0 }, 'gpt-4.1', { providerId: 'openai' }).total_price);
JS
out=$(node run.mjs); echo "$out"
[ "$out" = $'AI SDK usage 2.45\nOpenAI usage 2.45\ngenai-prices 0.65' ] || { echo "the behavior has changed"; exit 1; }
