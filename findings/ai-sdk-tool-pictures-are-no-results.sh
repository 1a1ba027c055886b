#!/usr/bin/env bash
# A tool of the AI SDK returns a picture as a file, and the same code runs with three providers. By chat
# completions the picture is sent as the JSON text of the part, in base64: the model cannot see it, and
# its bytes are paid as tokens. For models whose name is not Gemini 3's, @ai-sdk/google sends it as a
# part of the user and no functionResponse: whoever translates that has a call without a result.
# ai 7.0.173, @ai-sdk/openai-compatible 3.0.92, @ai-sdk/google 4.0.121, @ai-sdk/anthropic 4.0.105
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --save-exact ai@7.0.173 @ai-sdk/openai-compatible@3.0.92 @ai-sdk/google@4.0.121 @ai-sdk/anthropic@4.0.105 zod@4.6.7
cat > run.mjs <<'JS'
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText } from 'ai';
const picture = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const output = { type: 'content', value: [{ type: 'file', mediaType: 'image/png', data: { type: 'data', data: picture } }] };
const messages = [
  { role: 'user', content: 'Look' },
  { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: {} }] },
  { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c1', toolName: 'look', output }] },
];
async function sent(create, model, last) {
  let body;
  const fetch = async (_url, init) => { body = JSON.parse(init.body); throw new Error('enough'); };
  await generateText({ model: create({ name: 'x', baseURL: 'http://127.0.0.1', apiKey: 'k', fetch })(model), messages, maxRetries: 0 }).catch(() => {});
  return last(body);
}
const part = (p) => Object.keys(p).join();
console.log('chat: ' + await sent(createOpenAICompatible, 'm', (b) => `${typeof b.messages.at(-1).content} with base64 ${b.messages.at(-1).content.includes(picture)}`));
console.log('gemini-2.5-flash: ' + await sent(createGoogle, 'gemini-2.5-flash', (b) => b.contents.at(-1).parts.map(part).join(' ')));
console.log('gemini-3-pro-preview: ' + await sent(createGoogle, 'gemini-3-pro-preview', (b) => b.contents.at(-1).parts.map(part).join(' ')));
console.log('claude: ' + await sent(createAnthropic, 'claude-sonnet-4-5', (b) => b.messages.at(-1).content.map((c) => `${c.type} of ${c.content[0].type}`).join()));
JS
got=$(node run.mjs)
echo "$got"
[ "$got" = 'chat: string with base64 true
gemini-2.5-flash: inlineData text
gemini-3-pro-preview: functionResponse
claude: tool_result of image' ] || { echo "the behavior has changed"; exit 1; }
