// What becomes of each path that the SDK can call is listed in
// local/testdata/openai_paths.txt, and proved by local/openai_paths_test.go. Here the list
// is held against the real package.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';

const root = new URL('../node_modules/openai/resources/', import.meta.url);
const listed = new Set(readFileSync(new URL('../../../local/testdata/openai_paths.txt', import.meta.url), 'utf8').split('\n')
  .filter((line) => line && !line.startsWith('#')).map((line) => line.split(' ').slice(1).join(' ')));

test('every path of the package is listed', () => {
  const calls = /_client\s*\.(get|post|put|patch|delete|getAPIList)\(\s*(?:path\s*)?[`'"](\/[^`'"]*)[`'"]([^;]*)/g;
  const missing = new Set();
  let found = 0;
  for (const name of readdirSync(root, { recursive: true }).filter((n) => n.endsWith('.mjs'))) {
    for (const [, verb, raw, rest] of readFileSync(new URL(name, root), 'utf8').matchAll(calls)) {
      found++;
      const path = raw.replace(/\$\{[^}]*\}/g, '{id}').split('?')[0];
      const method = verb !== 'getAPIList' ? verb.toUpperCase() : /method:\s*'post'/.test(rest) ? 'POST' : 'GET';
      if (!listed.has(`${method} ${path}`)) missing.add(`${method} ${path}`);
    }
  }
  assert.ok(found > 300, `${found} calls were found`);
  assert.deepEqual([...missing], []);
});
