#!/usr/bin/env node
// Does a task with the Claude Agent SDK, which speaks Messages; the tools are those of an MCP server in
// this process.
import { createSdkMcpServer, query, tool } from '@anthropic-ai/claude-agent-sdk';
import { z } from 'zod';
import { drive, tools } from './tools.mjs';

const offered = (t) =>
  tool(t.name, t.description, Object.fromEntries(t.fields.map((name) => [name, z.string()])), async (input) => {
    const output = await t.execute(input);
    return { content: [output.image ? { type: 'image', data: output.image, mimeType: 'image/png' } : { type: 'text', text: output }] };
  });

await drive(async (_wire, _streamed, model, prompt) => {
  const options = {
    model,
    tools: [], // none of Claude Code
    mcpServers: { driver: createSdkMcpServer({ name: 'driver', tools: tools.map(offered) }) },
    allowedTools: ['mcp__driver__*'],
    settingSources: [],
  };
  for await (const message of query({ prompt, options })) {
    if (message.type !== 'result') continue;
    if (message.is_error) throw new Error(message.result ?? message.errors?.join('\n'));
    return message.result;
  }
  throw new Error('no result');
});
