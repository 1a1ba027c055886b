import test from 'node:test';
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import Anthropic from '@anthropic-ai/sdk';
import { openai, anthropic, openaiTargets, anthropicTargets } from '../support.mjs';

// What the client libraries make of 446 and 246, plain and streamed.

const said = 'mock: echo\nmy hunter2 is safe';
const late = `mock: echo\n${'one two three '.repeat(60)}hunter2`;
const forbids = (more = {}) => ({ 'default.regexMatch': { rule: 'hunter2', not: true }, id: 'no-passwords', ...more });
const redacts = (more = {}) => ({ 'default.regexReplace': { rule: '/hunter\\d/g', redactText: '***' }, ...more });
const before = (g) => ({ input_guardrails: [g] });
const behind = (g) => ({ output_guardrails: [g] });
const withConfig = (config, strict = 'false') => ({ headers: { 'x-gateway-config': JSON.stringify(config), 'x-gateway-strict-open-ai-compliance': strict } });

// denied runs a call, which must be refused with 446 and what the hooks said.
async function denied(call, Class) {
  const err = await call().then((v) => assert.fail(`answered ${JSON.stringify(v)}`), (e) => e);
  assert.ok(err instanceof Class, `${err?.constructor?.name}: ${err?.message}`);
  assert.equal(err.status, 446);
  return err;
}

// The shapes of OpenAI's client: how each is asked, and what text it gives.
const shapes = [
  {
    name: 'chat',
    ask: (client, model, more, options, text = said) => client.chat.completions.create({ model, messages: [{ role: 'user', content: text }], ...more }, options),
    text: (r) => r.choices[0].message.content,
    delta: (e) => e.choices?.[0]?.delta?.content ?? '',
  },
  {
    name: 'responses',
    ask: (client, model, more, options, text = said) => client.responses.create({ model, input: text, ...more }, options),
    text: (r) => r.output_text,
    delta: (e) => (e.type === 'response.output_text.delta' ? e.delta : ''),
  },
  {
    name: 'completions',
    only: '@mock',
    model: 'gpt-3.5-turbo-instruct',
    ask: (client, model, more, options, text = said) => client.completions.create({ model, max_tokens: 500, prompt: text, ...more }, options),
    text: (r) => r.choices[0].text,
    delta: (e) => e.choices?.[0]?.text ?? '',
  },
];

for (const shape of shapes) {
  for (const target of openaiTargets.filter((t) => t.provider && (!shape.only || shape.only === t.provider))) {
    const { name, provider } = target;
    const model = shape.model ?? target.model;
    const ask = (config, more = {}, strict, text) => () => shape.ask(openai(provider), model, more, withConfig(config, strict), text);
    const read = async (stream) => {
      let text = '';
      const results = [];
      for await (const event of stream) {
        text += shape.delta(event);
        if (event.hook_results) results.push(event.hook_results);
      }
      return { text, results };
    };

    test(`446, ${shape.name}: ${name}`, async () => {
      for (const more of [{}, { stream: true }]) {
        const err = await denied(ask(before(forbids({ deny: true })), more), OpenAI.APIError);
        assert.equal(err.error.type, 'hooks_failed');
        assert.equal(err.type, 'hooks_failed');
      }
      await denied(ask(behind(forbids({ deny: true }))), OpenAI.APIError);
      for (const more of [{ stream: 'hold' }, {}]) await denied(ask(behind(forbids({ deny: true, ...more })), { stream: true }), OpenAI.APIError);
    });

    test(`a stream that is denied on its way throws, ${shape.name}: ${name}`, async () => {
      let text = '';
      const read = async () => {
        for await (const event of await ask(behind(forbids({ deny: true })), { stream: true }, 'true', late)()) {
          if (event.type === 'response.failed') throw new OpenAI.APIError(undefined, event.response.error, event.response.error.message);
          text += shape.delta(event);
        }
      };
      await assert.rejects(read, OpenAI.APIError);
      // A stream that arrives in one piece is denied before any text was sent.
      if (text) assert.match(text, /one two/);
      assert.doesNotMatch(text, /hunter2/);
    });

    test(`246, ${shape.name}: ${name}`, async () => {
      for (const [config, phase] of [[before(forbids()), 'before_request_hooks'], [behind(forbids()), 'after_request_hooks']]) {
        const { data, response } = await ask(config)().withResponse();
        assert.equal(response.status, 246);
        assert.match(shape.text(data), /hunter2/);
        const [hook] = data.hook_results[phase];
        assert.equal(hook.verdict, false);
        assert.equal(hook.deny, false);
        assert.equal(hook.id, 'no-passwords');
        assert.equal(hook.checks[0].id, 'default.regexMatch');
      }
    });

    test(`246 and results of a stream, ${shape.name}: ${name}`, async () => {
      const { data, response } = await ask(before(forbids()), { stream: true })().withResponse();
      assert.equal(response.status, 246);
      const { text, results } = await read(data);
      assert.match(text, /hunter2/);
      assert.equal(results[0].before_request_hooks[0].verdict, false);
      // The strict shape has the status alone.
      const strict = await ask(before(forbids()), { stream: true }, 'true')().withResponse();
      assert.equal(strict.response.status, 246);
      const plain = await read(strict.data);
      assert.equal(plain.text, text);
      assert.deepEqual(plain.results, []);
    });

    test(`what is taken out never reaches the client, ${shape.name}: ${name}`, async () => {
      assert.match(shape.text(await ask(behind(redacts()))()), /my \*\*\* is safe/);
      for (const stream of ['hold', 'window']) {
        const { text } = await read(await ask(behind(redacts({ stream })), { stream: true })());
        assert.match(text, /my \*\*\* is safe/);
        assert.doesNotMatch(text, /hunter2/);
      }
    });

    test(`soft denial, ${shape.name}: ${name}`, async () => {
      const { data, response } = await ask(behind(forbids({ deny: true, soft_deny_200: true })))().withResponse();
      assert.equal(response.status, 200);
      assert.match(shape.text(data), /guardrail checks defined in the config failed/);
    });
  }
}

for (const { name, provider, model } of anthropicTargets) {
  const request = { model, max_tokens: 500, messages: [{ role: 'user', content: said }] };
  const ask = (config, more = {}, strict) => () => anthropic(provider).messages.create({ ...request, ...more }, withConfig(config, strict));

  test(`messages, 446: ${name}`, async () => {
    for (const more of [{}, { stream: true }]) {
      const err = await denied(ask(before(forbids({ deny: true })), more), Anthropic.APIError);
      assert.equal(err.error.error.type, 'hooks_failed');
      assert.equal(err.error.hook_results.before_request_hooks[0].deny, true);
    }
    const err = await denied(ask(behind(forbids({ deny: true }))), Anthropic.APIError);
    assert.equal(err.error.hook_results.after_request_hooks[0].id, 'no-passwords');
    for (const more of [{ stream: 'hold' }, {}]) await denied(ask(behind(forbids({ deny: true, ...more })), { stream: true }), Anthropic.APIError);
    const read = async () => {
      for await (const _ of await ask(behind(forbids({ deny: true })), { stream: true, messages: [{ role: 'user', content: late }] })());
    };
    await assert.rejects(read, Anthropic.APIError);
  });

  test(`messages, 246: ${name}`, async () => {
    const { data, response } = await ask(behind(forbids()))().withResponse();
    assert.equal(response.status, 246);
    assert.match(data.content[0].text, /hunter2/);
    assert.equal(data.hook_results.after_request_hooks[0].verdict, false);
  });

  test(`messages, streams: ${name}`, async () => {
    for (const [config, status, text] of [
      [before(forbids()), 246, /hunter2/],
      [behind(forbids({ deny: true, stream: 'after' })), 200, /hunter2/],
      [behind(redacts({ stream: 'window' })), 200, /my \*\*\* is safe/],
      [behind(redacts({ stream: 'hold' })), 200, /my \*\*\* is safe/],
    ]) {
      // Events that the library does not know are passed over by its helper.
      const stream = anthropic(provider).messages.stream(request, withConfig(config));
      const { response } = await stream.withResponse();
      assert.equal(response.status, status);
      assert.match(await stream.finalText(), text);
    }
  });
}
