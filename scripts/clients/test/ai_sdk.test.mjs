import test from 'node:test';
import assert from 'node:assert/strict';
import { generateText, generateObject, streamText, tool, jsonSchema, isStepCount } from 'ai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { gatewayKey, gatewayURL, openaiTargets, person, weather } from '../support.mjs';

const model = (target, options = {}) =>
  createOpenAICompatible({
    name: 'gateway',
    baseURL: gatewayURL,
    apiKey: gatewayKey,
    headers: target.provider ? { 'x-gateway-provider': target.provider } : {},
    includeUsage: true,
    supportsStructuredOutputs: true,
    ...options,
  })(target.model);

for (const target of openaiTargets) {
  test(`AI SDK, ${target.name}: text`, async () => {
    const got = await generateText({ model: model(target), prompt: 'mock: say=Hello', maxRetries: 0 });
    assert.match(got.text, /Hello/);
    assert.equal(got.finishReason, 'stop');
    assert.ok(got.usage.inputTokens > 0 && got.usage.outputTokens > 0);
  });

  test(`AI SDK, ${target.name}: stream`, async () => {
    const got = streamText({ model: model(target), prompt: 'mock: chunks=12', maxRetries: 0 });
    let pieces = 0;
    for await (const piece of got.textStream) pieces += piece ? 1 : 0;
    assert.ok(pieces > 3, `${pieces} pieces`);
    assert.equal(await got.finishReason, 'stop');
    assert.ok((await got.usage).outputTokens > 0);
  });

  test(`AI SDK, ${target.name}: a loop of tools`, async () => {
    const asked = [];
    const got = await generateText({
      model: model(target),
      prompt: 'What is the weather?',
      maxRetries: 0,
      stopWhen: isStepCount(3),
      tools: {
        get_weather: tool({
          description: weather.description,
          inputSchema: jsonSchema(weather.parameters),
          execute: async (input) => {
            asked.push(input);
            return { sky: 'clear' };
          },
        }),
      },
    });
    assert.equal(asked.length, 1);
    assert.equal(typeof asked[0].city, 'string');
    assert.equal(got.steps.length, 2);
    assert.ok(got.text.length > 0);
  });

  test(`AI SDK, ${target.name}: an object of a schema`, async () => {
    const { object } = await generateObject({ model: model(target), schema: jsonSchema(person), prompt: 'Describe a person', maxRetries: 0 });
    assert.equal(typeof object.name, 'string');
    assert.ok(Number.isInteger(object.age) && Array.isArray(object.tags));
  });

  test(`AI SDK, ${target.name}: errors keep their status`, async () => {
    await assert.rejects(generateText({ model: model(target), prompt: 'mock: status=429 retry-after=1', maxRetries: 0 }), (e) => e.statusCode === 429 && e.isRetryable === true);
  });
}

test('AI SDK: a stream that breaks is an error', async () => {
  let failed;
  const got = streamText({ model: model(openaiTargets[0]), prompt: 'mock: chunks=12 error-event=server_error after=4', maxRetries: 0, onError: ({ error }) => { failed = error; } });
  for await (const part of got.fullStream) if (part.type === 'error') failed = part.error;
  assert.ok(failed, 'no error came');
});
