import test from 'node:test';
import assert from 'node:assert/strict';
import { ChatOpenAI } from '@langchain/openai';
import { HumanMessage, ToolMessage } from '@langchain/core/messages';
import { asOpenAITool, gatewayKey, gatewayURL, openaiTargets, person, weather } from '../support.mjs';

const chat = (target) =>
  new ChatOpenAI({
    model: target.model,
    apiKey: gatewayKey,
    maxRetries: 0,
    timeout: 20_000,
    configuration: { baseURL: gatewayURL, defaultHeaders: target.provider ? { 'x-gateway-provider': target.provider } : {} },
  });

for (const target of openaiTargets) {
  test(`LangChain, ${target.name}: invoke`, async () => {
    const got = await chat(target).invoke('mock: say=Hello');
    assert.match(got.content, /Hello/);
    assert.ok(got.usage_metadata.input_tokens > 0 && got.usage_metadata.output_tokens > 0);
  });

  test(`LangChain, ${target.name}: stream`, async () => {
    let pieces = 0, usage;
    for await (const piece of await chat(target).stream('mock: chunks=12')) {
      pieces += piece.content ? 1 : 0;
      usage = piece.usage_metadata ?? usage;
    }
    assert.ok(pieces > 3, `${pieces} pieces`);
    assert.ok(usage.output_tokens > 0);
  });

  test(`LangChain, ${target.name}: tools, there and back`, async () => {
    const bound = chat(target).bindTools([asOpenAITool(weather)]);
    const question = new HumanMessage('What is the weather?');
    const called = await bound.invoke([question]);
    assert.equal(called.tool_calls.length, 1);
    assert.equal(called.tool_calls[0].name, 'get_weather');
    const told = await bound.invoke([question, called, new ToolMessage({ content: 'clear', tool_call_id: called.tool_calls[0].id })]);
    assert.ok(told.content.length > 0);
    assert.equal(told.tool_calls.length, 0);
  });

  test(`LangChain, ${target.name}: an object of a schema`, async () => {
    const got = await chat(target).withStructuredOutput(person, { name: 'person', method: 'jsonSchema', strict: true }).invoke('Describe a person');
    assert.equal(typeof got.name, 'string');
    assert.ok(Number.isInteger(got.age));
  });

  test(`LangChain, ${target.name}: errors keep their status`, async () => {
    await assert.rejects(chat(target).invoke('mock: status=429'), (e) => e.status === 429);
  });
}
