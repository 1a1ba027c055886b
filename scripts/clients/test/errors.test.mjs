import test from 'node:test';
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import Anthropic from '@anthropic-ai/sdk';
import { openai, openaiTargets, anthropic, anthropicTargets } from '../support.mjs';

// rejects runs a call and gives its error, which must be of a class and carry
// a message.
async function rejects(call, Class, status) {
  const err = await call().then((v) => assert.fail(`answered ${JSON.stringify(v)}`), (e) => e);
  assert.ok(err instanceof Class, `${err?.constructor?.name}: ${err?.message}`);
  assert.equal(err.status, status);
  assert.ok(err.message.length > 5);
  return err;
}

for (const { name, provider, model } of openaiTargets) {
  const ask = (content, more = {}, client = openai(provider)) => () => client.chat.completions.create({ model, messages: [{ role: 'user', content }], ...more });

  test(`401 for a wrong gateway key: ${name}`, async () => {
    await rejects(ask('Hi', {}, openai(provider, { apiKey: 'wrong-key' })), OpenAI.AuthenticationError, 401);
  });

  test(`400 for what is out of range: ${name}`, async () => {
    await rejects(ask('Hi', { temperature: 3 }), OpenAI.BadRequestError, 400);
    await rejects(ask('Hi', { messages: [] }), OpenAI.BadRequestError, 400);
    await rejects(ask('Hi', { messages: [{ role: 'robot', content: 'x' }] }), OpenAI.BadRequestError, 400);
  });

  test(`404 for a model that the provider lacks: ${name}`, async () => {
    const missing = model.includes('/') ? model.split('/')[0] + '/does-not-exist' : 'does-not-exist';
    await rejects(ask('Hi', { model: missing }), OpenAI.NotFoundError, 404);
  });

  test(`429 with retry-after: ${name}`, async () => {
    const err = await rejects(ask('mock: status=429 retry-after=7'), OpenAI.RateLimitError, 429);
    assert.equal(err.headers.get('retry-after'), '7');
  });

  test(`a provider's failure: ${name}`, async () => {
    await rejects(ask('mock: status=500'), OpenAI.InternalServerError, 500);
    const err = await rejects(ask('mock: html'), OpenAI.InternalServerError, 502);
    assert.ok(!String(err.message).includes('<html>'), err.message);
  });

  test(`an error within a stream: ${name}`, async () => {
    const err = await rejects(async () => {
      for await (const _ of await ask('mock: chunks=9 error-event=overloaded_error after=4', { stream: true })());
    }, OpenAI.APIError, undefined);
    assert.match(err.message, /[Oo]verloaded/);
  });

  test(`a stream that breaks off: ${name}`, async () => {
    await assert.rejects(async () => {
      for await (const _ of await ask('mock: chunks=9 cut=after:4', { stream: true })());
    });
  });
}

for (const { name, provider, model } of anthropicTargets) {
  const ask = (content, more = {}, client = anthropic(provider)) => () => client.messages.create({ model, max_tokens: 50, messages: [{ role: 'user', content }], ...more });

  test(`messages, 401: ${name}`, async () => {
    const err = await rejects(ask('Hi', {}, anthropic(provider, { authToken: 'wrong-key' })), Anthropic.AuthenticationError, 401);
    assert.equal(err.error.type, 'error');
  });

  test(`messages, 400: ${name}`, async () => {
    const err = await rejects(ask('Hi', { messages: [] }), Anthropic.BadRequestError, 400);
    assert.equal(err.error.type, 'error');
    assert.ok(err.error.error.message);
  });

  test(`messages, 404: ${name}`, async () => {
    await rejects(ask('Hi', { model: 'does-not-exist' }), Anthropic.NotFoundError, 404);
  });

  test(`messages, 429: ${name}`, async () => {
    const err = await rejects(ask('mock: status=429 retry-after=7'), Anthropic.RateLimitError, 429);
    assert.equal(err.headers.get('retry-after'), '7');
  });

  test(`messages, an error within a stream: ${name}`, async () => {
    await assert.rejects(async () => {
      for await (const _ of await ask('mock: chunks=9 error-event=overloaded_error after=4', { stream: true })());
    }, /[Oo]verloaded/);
  });
}
