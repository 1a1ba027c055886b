// Runs h2spec against the local gateway, which speaks HTTP/2 without TLS to clients that begin
// with it. Exits with 1 if a case fails.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..'), dir = mkdtempSync(join(tmpdir(), 'h2spec-'));
const build = (cwd, out, pkg) => {
  const done = spawnSync('go', ['build', '-o', join(dir, out), pkg], { cwd: join(root, cwd), stdio: ['ignore', 'inherit', 'inherit'] });
  if (done.status !== 0) process.exit(2);
};
build('.', 'gateway', './local');
build('scripts/lint', 'h2spec', 'github.com/summerwind/h2spec/cmd/h2spec');
const gateway = spawn(join(dir, 'gateway'), ['-addr', '127.0.0.1:0', '-data', join(dir, 'data')]);
let text = '', status = 2;
for await (const chunk of gateway.stdout) {
  text += chunk;
  const at = text.match(/gateway ready on http:\/\/127\.0\.0\.1:(\d+)/);
  if (!at) continue;
  const done = spawnSync(join(dir, 'h2spec'), ['-h', '127.0.0.1', '-p', at[1], '-P', '/healthz', '-o', '5'], { encoding: 'utf8', timeout: 300_000 });
  console.log(done.stdout.slice(Math.max(done.stdout.indexOf('Failures:'), 0)));
  status = done.status ?? 2;
  break;
}
gateway.kill();
rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
process.exit(status === 0 ? 0 : 1);
