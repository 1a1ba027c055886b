#!/usr/bin/env bash
# A price of 0 in a model price data set often means that the price is missing.
#
# tokenlens 1.3.1 returns undefined for a model that it does not have, but the number 0 for 15
# paid models without a price, such as gpt-4o-mini at OpenRouter (the free variants there have
# names of their own). @pydantic/genai-prices 0.1.8 prices all 15, and has 0 for 3 models that
# tokenlens prices. A budget that is fed from 0 never ends. Of the 234 models that both have, 49
# differ in the price of 1,000 tokens.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --save-exact tokenlens@1.3.1 @pydantic/genai-prices@0.1.8
cat > run.mjs <<'JS'
import { costFromUsage, MODEL_IDS } from 'tokenlens';
import { calcPrice } from '@pydantic/genai-prices';
const providers = { xai: 'x-ai' }, timestamp = new Date('2026-11-01T12:00:00Z');
const lens = (id, input, output) => costFromUsage({ id, usage: { inputTokens: input, outputTokens: output } });
const genai = (id, input, output) => {
  const [provider, ...model] = id.split(':');
  return calcPrice({ input_tokens: input, output_tokens: output }, model.join(':'), { providerId: providers[provider] ?? provider, timestamp })?.total_price;
};
let shared = 0, differ = 0;
const zero = { lens: [], genai: [] };
for (const id of MODEL_IDS) {
  let a, b;
  try { a = [lens(id, 1000, 0), lens(id, 0, 1000)]; b = [genai(id, 1000, 0), genai(id, 0, 1000)]; } catch { continue; }
  if (a[0] === undefined || b[0] === undefined) continue;
  shared++;
  if (a.some((price, i) => Math.abs(price - b[i]) > 1e-9)) differ++;
  if (a[0] === 0 && b[0] > 0) zero.lens.push(id);
  if (b[0] === 0 && a[0] > 0) zero.genai.push(id);
}
console.log(`unknown model ${lens('openai:gpt-99-none', 1000, 0)}, openrouter:openai/gpt-4o-mini ${lens('openrouter:openai/gpt-4o-mini', 1000, 0)} and ${genai('openrouter:openai/gpt-4o-mini', 1000, 0)}`);
console.log(`shared ${shared}, different ${differ}, zero only in tokenlens ${zero.lens.length}, zero only in genai-prices ${zero.genai.length}`);
console.log('genai-prices 0:', zero.genai.join(' '));
console.log('tokenlens 0:', zero.lens.join(' '));
JS
out=$(node run.mjs); echo "$out"
[ "$(head -2 <<< "$out")" = $'unknown model undefined, openrouter:openai/gpt-4o-mini 0 and 0.00015\nshared 234, different 49, zero only in tokenlens 15, zero only in genai-prices 3' ] || { echo "the data have changed"; exit 1; }
