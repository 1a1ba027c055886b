// Lists the request fields and path segments by which the providers' SDKs may name a model
// or an object in the provider's account, from their type definitions and sources. To rerun,
// install the packages below (any version; the output names it) and TypeScript, then:
//
//   npm i --prefix FOLDER --ignore-scripts typescript@5 openai @anthropic-ai/sdk @google/genai cohere-ai @aws-sdk/client-bedrock-runtime
//   node scripts/objects/generate.mjs FOLDER > shared/dialect/reference/testdata/objects.txt
//
// The tests of shared/dialect/reference and shared/relay/target then fail for each row that
// is neither handled nor listed as an exception.
import { createRequire } from 'node:module';
import { readFileSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';

const folder = resolve(process.argv[2]);
const ts = createRequire(join(folder, 'package.json'))('typescript');

const packages = [
  { name: 'openai', provider: 'openai', types: 'resources', classes: /APIResource/, sources: 'resources' },
  { name: '@anthropic-ai/sdk', provider: 'anthropic', types: 'resources', classes: /APIResource/, sources: 'resources' },
  { name: '@google/genai', provider: 'google', types: 'dist/genai.d.ts', classes: /./, sources: 'dist/index.cjs' },
  { name: 'cohere-ai', provider: 'cohere', types: 'dist', classes: /./, sources: 'dist' },
  { name: '@aws-sdk/client-bedrock-runtime', provider: 'bedrock', types: 'dist-types/commands', interfaces: /CommandInput$/, sources: 'dist-cjs' },
];

// Names of fields that may refer to something, and of those which need the name of the
// object around them to be understood.
const refers = /(id|ids|arn|uri|uris|url|urls|models?|modelname|name|names|handle|token|source|resource|engine|file|files|uripaths|stores?|corpus|corpora|dataset|container|conversation|agent|voice|video|consent|environment|cachedcontent)$/;
const general = /^(id|ids|name|names|handle|token|source|resource|engine|file|files|url|uri|content)$/;
const canonical = (s) => s.toLowerCase().replaceAll('_', '');

const list = (at, suffix) => (at.endsWith(suffix) ? [at] : readdirSync(at, { recursive: true }).filter((n) => n.endsWith(suffix)).map((n) => join(at, n)));

// fieldsOf returns the text fields that the methods of a package take, as "parent.leaf".
function fieldsOf(p, root) {
  const files = list(join(root, p.types), p.types.endsWith('.d.ts') ? 'genai.d.ts' : '.d.ts');
  const program = ts.createProgram(files, { skipLibCheck: true, strict: true, moduleResolution: ts.ModuleResolutionKind.NodeNext, module: ts.ModuleKind.NodeNext, types: [] });
  const checker = program.getTypeChecker();
  const found = new Set(), seen = new Set();
  const isText = (t) => t.flags & (ts.TypeFlags.String | ts.TypeFlags.TemplateLiteral) || (t.isUnion() && t.types.some(isText)) || (t.isIntersection() && t.types.some((x) => x.flags & ts.TypeFlags.String));
  const visit = (t, parent, name) => {
    const key = `${t.id}:${parent}.${name}`;
    if (seen.has(key)) return;
    seen.add(key);
    if (isText(t)) found.add(`${canonical(parent)}.${canonical(name)}`);
    if (t.isUnionOrIntersection()) return t.types.forEach((x) => visit(x, parent, name));
    if (!(t.flags & ts.TypeFlags.Object) || t.getCallSignatures().length) return;
    if (checker.isArrayType(t) || checker.isTupleType(t)) return checker.getTypeArguments(t).forEach((x) => visit(x, parent, name));
    const from = t.symbol?.declarations?.[0]?.getSourceFile().fileName ?? '';
    if (from.includes('/typescript/lib/') || from.includes('@types/node')) return;
    for (const prop of checker.getPropertiesOfType(t)) {
      const d = prop.valueDeclaration ?? prop.declarations?.[0];
      if (d) visit(checker.getTypeOfSymbolAtLocation(prop, d), name, prop.name);
    }
  };
  const methods = (cls) => {
    for (const m of cls.members) {
      if (!m.name || m.modifiers?.some((x) => x.kind === ts.SyntaxKind.PrivateKeyword)) continue;
      for (const s of checker.getTypeAtLocation(m).getCallSignatures()) for (const param of s.getParameters()) {
        const t = checker.getTypeOfSymbolAtLocation(param, param.valueDeclaration);
        if (/options$/i.test(param.name) || isText(t)) continue; // those are path segments
        visit(t, '', '');
      }
    }
  };
  const each = (n) => {
    if (ts.isClassDeclaration(n) && p.classes?.test(n.heritageClauses?.map((h) => h.getText()).join(' ') || n.name?.text || '')) methods(n);
    if (ts.isInterfaceDeclaration(n) && p.interfaces?.test(n.name.text)) visit(checker.getTypeAtLocation(n), '', '');
    ts.forEachChild(n, each);
  };
  files.forEach((f) => each(program.getSourceFile(f)));
  return found;
}

// pathsOf returns the paths with an id that a package requests.
function pathsOf(p, root) {
  const found = new Set();
  const patterns = [/`(\/?[a-z][^`\s]*\$\{[^`]*)`/g, /formatMap\('([^']*\{[^']*)'/g, /"(\/[a-z-]+\/[^"]*\{[^"]*)"/g];
  for (const f of list(join(root, p.sources), p.sources.endsWith('.cjs') ? 'index.cjs' : '.js')) {
    const text = readFileSync(f, 'utf8');
    for (const re of patterns) for (const [, path] of text.matchAll(re)) {
      const plain = '/' + path.replace(/\?.*/, '').replace(/^\//, '').replace(/\$?\{[^}]*\}/g, '{}');
      if (/^\/[A-Za-z0-9_\-/{}:]+$/.test(plain) && /\/\{\}/.test(plain) && (/[a-z]\/\{\}/.test(plain))) found.add(plain);
    }
  }
  return found;
}

const fields = new Map(), paths = new Set(), add = (key, by) => fields.set(key, (fields.get(key) ?? new Set()).add(by));
console.log('# Generated by scripts/objects/generate.mjs: fields (their names, or those of their object and theirs) and\n# paths by which the SDKs of providers may name models and objects.');
for (const p of packages) {
  const root = join(folder, 'node_modules', p.name);
  console.log(`# ${p.name} ${JSON.parse(readFileSync(join(root, 'package.json'))).version}`);
  for (const key of fieldsOf(p, root)) {
    const [parent, leaf] = key.split('.');
    if (refers.test(leaf)) add(general.test(leaf) && parent ? key : leaf, p.provider);
  }
  for (const path of pathsOf(p, root)) paths.add(`${p.provider} ${path}`);
}
for (const key of [...fields.keys()].sort()) console.log(`field ${key} ${[...fields.get(key)].join(',')}`);
for (const path of [...paths].sort()) console.log(`path ${path}`);
