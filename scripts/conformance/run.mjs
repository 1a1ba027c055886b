// Runs third-party suites against the gateway and writes functions/docs/guides/conformance.md,
// one line for each suite: failures and suites that were not run are lines, too. Arguments are
// words of the suites to run; the lines of others keep what the page says of them.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync, existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url)), root = join(here, '..', '..');
const page = join(root, 'functions', 'docs', 'guides', 'conformance.md');
const suites = JSON.parse(readFileSync(join(here, 'suites.json'), 'utf8'));
const limit = Number(process.env.SUITE_TIMEOUT ?? 1200) * 1000;
const today = new Date().toISOString().slice(0, 10);
const chosen = process.argv.slice(2);
const before = existsSync(page) ? readFileSync(page, 'utf8').split('\n').filter(l => l.startsWith('| ')).map(l => l.slice(2, -2).split(' | ')) : [];

const versionOf = s => {
  const lock = s.lock && join(root, s.lock, 'package-lock.json');
  const found = lock && existsSync(lock) && JSON.parse(readFileSync(lock, 'utf8')).packages['node_modules/' + s.version];
  if (found) return s.version + ' ' + found.version;
  const mod = readFileSync(join(root, 'go.mod'), 'utf8').split('\n').map(l => l.trim().split(' ')).find(([name]) => name === s.version);
  return mod ? mod.slice(0, 2).join(' ') : s.version;
};

const lines = suites.map(s => {
  const artifact = s.artifact ? '`' + s.artifact + '`' : s.why ?? '';
  if (!s.run.length) return [s.suite, 'not run', versionOf(s), today, artifact];
  if (chosen.length && !chosen.some(word => s.suite.toLowerCase().includes(word.toLowerCase()))) {
    return before.find(([suite]) => suite === s.suite) ?? [s.suite, 'not run', versionOf(s), today, artifact];
  }
  console.error(s.suite);
  const done = spawnSync(s.run[0], s.run.slice(1), { cwd: root, encoding: 'utf8', timeout: limit, maxBuffer: 1 << 28 });
  const text = (done.stdout ?? '') + (done.stderr ?? '');
  let verdict = done.status === 0 ? 'pass' : 'fail';
  if (done.error?.code === 'ETIMEDOUT' || /no tests to run/.test(text)) verdict = 'not run';
  if (verdict !== 'pass') console.error(text.slice(-4000));
  return [s.suite, verdict, versionOf(s), today, artifact];
});

const count = v => lines.filter(l => l[1] === v).length;
writeFileSync(page, `# Conformance

Third-party suites and libraries that are run against the gateway, with the result of the last run of each on the date in its line. \`make conformance\` runs all of them and writes this page; \`make conformance SUITES=saml\` runs those whose name contains a word. ${count('pass')} pass, ${count('fail')} fail, ${count('not run')} were not run.

| Suite | Verdict | Version | Date | Artifact |
|---|---|---|---|---|
${lines.map(l => '| ' + l.join(' | ') + ' |').join('\n')}

A suite that is slow or needs a browser may not have been run on the date of its line: then its verdict is \`not run\`, never \`pass\`.
`);
process.exit(count('fail') ? 1 : 0);
