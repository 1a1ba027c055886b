// The tools that each driver offers, its arguments, and how it ends. A tool that throws has failed: each
// SDK reports that to the model in its own way.
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const execute = promisify(execFile);

// read returns text, or { image } in base64.
async function read({ path }) {
  const bytes = await readFile(path);
  return path.endsWith('.png') ? { image: bytes.toString('base64') } : bytes.toString();
}

async function edit({ path, before, after }) {
  const text = await readFile(path, 'utf8');
  if (!text.includes(before)) throw new Error(`${path} does not contain ${before}`);
  await writeFile(path, text.replace(before, () => after));
  return 'edited';
}

async function write({ path, content }) {
  await writeFile(path, content);
  return 'written';
}

async function run({ command }) {
  const { stdout, stderr } = await execute('sh', ['-c', command], { maxBuffer: 10 << 20 });
  return stdout + stderr;
}

export const tools = [
  { name: 'read', description: 'Read a file', fields: ['path'], execute: read },
  { name: 'edit', description: 'Replace text in a file', fields: ['path', 'before', 'after'], execute: edit },
  { name: 'write', description: 'Write a file', fields: ['path', 'content'], execute: write },
  { name: 'run', description: 'Run a command', fields: ['command'], execute: run },
];

// schemaOf returns the JSON schema of a tool's arguments.
export function schemaOf({ fields }) {
  const properties = Object.fromEntries(fields.map((name) => [name, { type: 'string' }]));
  return { type: 'object', properties, required: fields, additionalProperties: false };
}

export const { GATEWAY_URL: address, GATEWAY_API_KEY: apiKey } = process.env;

// drive has the prompt of the command line, "wire[,streamed] model prompt", answered by request(wire,
// streamed, model, prompt). It writes the text or the message of the error.
export async function drive(request) {
  const [wire, model, prompt] = process.argv.slice(2);
  const [name, streamed] = wire.split(',');
  try {
    console.log(await request(name, Boolean(streamed), model, prompt));
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
