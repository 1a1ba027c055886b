// Runs third-party suites against the gateway and writes functions/docs/guides/conformance.md,
// one line for each suite: failures and suites that were not run are lines, too. Arguments are
// words of the suites to run; the lines of others keep what the page says of them.
//
// The tests of one package run together. A suite passes if each of its tests ran and passed: a
// skipped or missing test makes it `not run`.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync, existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url)), root = join(here, '..', '..');
const page = join(root, 'functions', 'docs', 'guides', 'conformance.md');
const suites = JSON.parse(readFileSync(join(here, 'suites.json'), 'utf8'));
const limit = Number(process.env.SUITE_TIMEOUT ?? 1800) * 1000;
const today = new Date().toISOString().slice(0, 10);
const words = process.argv.slice(2).map(w => w.toLowerCase());
const chosen = s => !words.length || words.some(w => s.suite.toLowerCase().includes(w));
const before = existsSync(page) ? readFileSync(page, 'utf8').split('\n').filter(l => l.startsWith('| ')).map(l => l.slice(2, -2).split(' | ')) : [];

const versionOf = s => {
  const lock = s.lock && join(root, s.lock, 'package-lock.json');
  const found = lock && existsSync(lock) && JSON.parse(readFileSync(lock, 'utf8')).packages['node_modules/' + s.version];
  if (found) return s.version + ' ' + found.version;
  const mod = readFileSync(join(root, s.mod ?? '', 'go.mod'), 'utf8').split('\n').map(l => l.trim().split(' ')).find(([name]) => name === s.version);
  return mod ? mod.slice(0, 2).join(' ') : s.version;
};

const run = command => spawnSync(command[0], command.slice(1), { cwd: root, encoding: 'utf8', timeout: limit, maxBuffer: 1 << 30 });

// pattern is the argument of -run that covers the tests, level by level.
const pattern = tests => {
  const levels = [];
  for (const test of tests) test.split('/').forEach((part, n) => (levels[n] ??= new Set()).add(part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')));
  return levels.map(l => '^(' + [...l].join('|') + ')$').join('/');
};

// results are the last events of the tests of a package: pass, fail or skip, by name.
const results = (pkg, tests) => {
  const done = run(['go', 'test', '-vet=off', '-count=1', '-json', '-timeout', '30m', pkg, ...(tests.length ? ['-run', pattern(tests)] : [])]);
  const verdicts = new Map(), output = new Map();
  for (const line of (done.stdout ?? '').split('\n')) {
    let e;
    try { e = JSON.parse(line); } catch { continue; }
    if (['pass', 'fail', 'skip'].includes(e.Action)) verdicts.set(e.Test ?? '', e.Action);
    if (e.Action === 'output') output.set(e.Test ?? '', (output.get(e.Test ?? '') ?? '') + e.Output);
  }
  for (const [test, verdict] of verdicts) if (verdict === 'fail') console.error(pkg, test, (output.get(test) ?? '').slice(-3000));
  if (done.error || !verdicts.size) console.error(pkg, String(done.error ?? ''), (done.stderr ?? '').slice(-3000));
  return verdicts;
};

const packages = new Map();
for (const s of suites) if (s.pkg && chosen(s)) packages.set(s.pkg, [...(packages.get(s.pkg) ?? []), ...(s.tests ?? [])]);
const ran = new Map();
for (const [pkg, tests] of packages) {
  console.error(pkg, tests.join(' '));
  ran.set(pkg, results(pkg, tests));
}

const verdictOf = s => {
  if (s.run) return run(s.run).status === 0 ? 'pass' : 'fail';
  if (!s.pkg) return 'not run';
  const of = ran.get(s.pkg), all = (s.tests ?? ['']).map(test => of.get(test));
  if (all.includes('fail')) return 'fail';
  return all.every(v => v === 'pass') ? 'pass' : 'not run';
};

const lines = suites.map(s => {
  const artifact = s.artifact ? '`' + s.artifact + '`' : s.why ?? '';
  const old = before.find(([suite]) => suite === s.suite);
  if (!chosen(s)) return old ?? [s.suite, 'not run', versionOf(s), today, artifact];
  const verdict = verdictOf(s);
  return [s.suite, verdict, versionOf(s), today, verdict === 'fail' && s.red ? artifact + ': ' + s.red : artifact];
});

const count = v => lines.filter(l => l[1] === v).length;
writeFileSync(page, `# Conformance

Third-party suites and libraries that are run against the gateway, with the result of the last run of each on the date in its line. \`make conformance\` runs all of them and writes this page; \`make conformance SUITES=saml\` runs those whose name contains a word. ${count('pass')} pass, ${count('fail')} fail, ${count('not run')} were not run.

| Suite | Verdict | Version | Date | Artifact |
|---|---|---|---|---|
${lines.map(l => '| ' + l.join(' | ') + ' |').join('\n')}

A suite with a test that was skipped or did not run is \`not run\`, never \`pass\`.
`);
// Failures with a stated reason are on the page; others fail the run.
process.exit(lines.some(l => l[1] === 'fail' && !suites.find(s => s.suite === l[0])?.red) ? 1 : 0);
