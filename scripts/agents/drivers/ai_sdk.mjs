#!/usr/bin/env node
// Does a task with the AI SDK: by chat, Responses, Messages or Gemini.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, isStepCount, jsonSchema, streamText, tool } from 'ai';
import { address, apiKey, drive, schemaOf, tools } from './tools.mjs';

const baseURL = `${address}/v1`;
const openai = createOpenAI({ baseURL, apiKey });
const wires = {
  chat: openai.chat,
  compatible: createOpenAICompatible({ name: 'gateway', baseURL, apiKey }),
  responses: openai,
  unstored: openai, // Responses with "store": false
  messages: createAnthropic({ baseURL, apiKey }),
  gemini: createGoogle({ baseURL: `${address}/v1beta`, apiKey }),
};

// toModelOutput returns a picture as a file.
const toModelOutput = ({ output }) =>
  output.image
    ? { type: 'content', value: [{ type: 'file', mediaType: 'image/png', data: { type: 'data', data: output.image } }] }
    : { type: 'text', value: output };

const offered = (t) => tool({ description: t.description, inputSchema: jsonSchema(schemaOf(t)), execute: t.execute, toModelOutput });

await drive(async (wire, streamed, model, prompt) => {
  const request = {
    model: wires[wire](model),
    prompt,
    stopWhen: isStepCount(20),
    tools: Object.fromEntries(tools.map((t) => [t.name, offered(t)])),
    providerOptions: wire === 'unstored' ? { openai: { store: false } } : {},
  };
  if (!streamed) return (await generateText(request)).text;
  let text = '';
  for await (const part of streamText({ ...request, onError() {} }).fullStream) {
    if (part.type === 'error') throw part.error;
    if (part.type === 'text-delta') text += part.text;
  }
  return text;
});
