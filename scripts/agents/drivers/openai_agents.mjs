#!/usr/bin/env node
// Does a task with the Agents SDK of OpenAI: by chat or Responses.
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from '@openai/agents';
import { address, apiKey, drive, schemaOf, tools } from './tools.mjs';

setTracingDisabled(true);

const offered = (t) =>
  tool({
    name: t.name,
    description: t.description,
    parameters: schemaOf(t),
    errorFunction: (context, error) => error.message, // without it the model gets no reason
    async execute(input) {
      const output = await t.execute(input);
      return output.image ? { type: 'image', image: { data: output.image, mediaType: 'image/png' } } : output;
    },
  });

await drive(async (wire, stream, model, prompt) => {
  const modelProvider = new OpenAIProvider({ baseURL: `${address}/v1`, apiKey, useResponses: wire === 'responses' });
  const agent = new Agent({ name: 'Driver', instructions: 'Do the task.', model, tools: tools.map(offered) });
  const result = await new Runner({ modelProvider }).run(agent, prompt, { stream, maxTurns: 20 });
  await result.completed;
  return result.finalOutput;
});
