// A TypeScript client generated from the served API document: generated.ts is compiled with it
// and used.
import test from 'node:test';
import assert from 'node:assert/strict';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';
import ts from 'typescript';
import { gatewayURL, gatewayKey } from '../support.mjs';

test('a generated client compiles and works', async (t) => {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const dir = await mkdtemp(path.join(root, '.generated-')); // where imports find node_modules
  t.after(() => rm(dir, { recursive: true }));
  await writeFile(path.join(dir, 'gateway.d.ts'), astToString(await openapiTS(new URL(`${gatewayURL}/openapi.json`))));
  const program = path.join(dir, 'generated.ts');
  await copyFile(path.join(root, 'generated.ts'), program);

  const compiled = ts.createProgram([program], {
    strict: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext, lib: ['lib.es2022.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'], types: [],
  });
  const problems = [...ts.getPreEmitDiagnostics(compiled), ...compiled.emit().diagnostics];
  assert.deepEqual(problems.map((p) => `${p.file?.fileName ?? ''}:${p.start} ${ts.flattenDiagnosticMessageText(p.messageText, '\n')}`), []);

  const { use } = await import(pathToFileURL(path.join(dir, 'generated.js')).href);
  const got = await use(gatewayURL, process.env.GATEWAY_ADMIN_KEY, gatewayKey);
  assert.equal(got.read?.name, got.name);
  assert.equal(got.status, 404);
  assert.equal(typeof got.refused?.error?.message, 'string');
  assert.equal(got.answer?.choices?.[0]?.message?.content, 'Typed');
  assert.equal(got.removed, 200);
});
