// Tools of MCP servers that the gateway calls for the model: the libraries read what
// they show of their own provider's calls.
import { test, before, after } from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import { openai, anthropic } from '../support.mjs';
import { admin } from '../workspaces.mjs';

const beta = { 'x-gateway-beta': 'server-side-mcp-2026-06-01' };
const label = '@gateway-mcp/sums';
const tool = { type: 'mcp', server_label: label };

// A server with one tool, by the protocol with sessions.
const answers = {
  initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'sums', version: '1' } }),
  'tools/list': () => ({ tools: [{ name: 'add', description: 'Adds.', inputSchema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } } }] }),
  'tools/call': ({ arguments: of }) => ({ content: [{ type: 'text', text: `the sum is ${of.a + of.b}` }] }),
};
const server = http.createServer(async (req, res) => {
  let body = '';
  for await (const piece of req) body += piece;
  const { id, method, params } = body ? JSON.parse(body) : {};
  if (!answers[method]) return res.writeHead(method?.startsWith('notifications/') ? 202 : 400).end();
  res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method](params) }));
});

before(async () => {
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { id: workspace_id } = await admin('GET', '/admin/workspaces/default');
  const url = `http://127.0.0.1:${server.address().port}`;
  await admin('POST', '/mcp-integrations', { name: 'Sums', slug: 'sums', url, auth_type: 'none', transport: 'http', workspace_id });
  await admin('POST', '/mcp-servers', { name: 'Sums', slug: 'sums', mcp_integration_id: 'sums', workspace_id });
});
after(() => server.close());

const ask = 'mock: call=add {"a":2,"b":3}\nWhat is the sum?';

for (const [name, provider, model] of [['OpenAI', '@mock', 'gpt-4o'], ['Anthropic', '@mock-anthropic', 'claude-sonnet-4-5']]) {
  const responses = openai(provider, { defaultHeaders: { 'x-gateway-provider': provider, ...beta } }).responses;
  const messages = anthropic(provider, { defaultHeaders: { 'x-gateway-provider': provider, ...beta } }).beta.messages;

  const checkResponse = (answer) => {
    assert.deepEqual(answer.output.map((i) => i.type), ['mcp_list_tools', 'mcp_call', 'message']);
    const [listed, call] = answer.output;
    assert.deepEqual(listed.tools.map((t) => t.name), ['add']);
    assert.equal(call.output, 'the sum is 5');
    assert.equal(call.server_label, label);
    assert.deepEqual(JSON.parse(call.arguments), { a: 2, b: 3 });
    assert.ok(answer.output_text);
    assert.ok(answer.usage.total_tokens > 0);
  };

  test(`responses: ${name}`, async () => {
    const answer = await responses.create({ model, input: ask, tools: [tool] });
    checkResponse(answer);
    // What came goes back as it is, and the conversation goes on.
    const next = await responses.create({ model, input: [{ role: 'user', content: ask }, ...answer.output, { role: 'user', content: 'mock: no-tools say=Five\nSo?' }], tools: [tool] });
    assert.equal(next.output_text, 'Five');
    assert.deepEqual(next.output.map((i) => i.type), ['message']);
  });

  test(`responses, the library's own stream: ${name}`, async () => {
    const stream = responses.stream({ model, input: ask, tools: [tool] });
    const names = [];
    let next = 0;
    for await (const event of stream) {
      assert.equal(event.sequence_number, next++);
      names.push(event.type);
    }
    checkResponse(await stream.finalResponse());
    for (const expected of ['response.mcp_list_tools.completed', 'response.mcp_call.in_progress', 'response.mcp_call_arguments.done', 'response.mcp_call.completed', 'response.output_text.delta']) assert.ok(names.includes(expected), expected);
    assert.equal(names[0], 'response.created');
    assert.equal(names.at(-1), 'response.completed');
  });

  test(`responses, approved: ${name}`, async () => {
    const tools = [{ ...tool, require_approval: 'always' }];
    const first = await responses.create({ model, input: ask, tools });
    const request = first.output.at(-1);
    assert.equal(request.type, 'mcp_approval_request');
    const answer = await responses.create({ model, tools, input: [{ role: 'user', content: ask }, ...first.output, { type: 'mcp_approval_response', approval_request_id: request.id, approve: true }] });
    assert.deepEqual(answer.output.map((i) => i.type), ['mcp_call', 'message']);
    assert.equal(answer.output[0].approval_request_id, request.id);
  });

  const checkMessage = (answer) => {
    assert.deepEqual(answer.content.map((b) => b.type), ['mcp_tool_use', 'mcp_tool_result', 'text']);
    const [use, result] = answer.content;
    assert.equal(use.server_name, label);
    assert.deepEqual(use.input, { a: 2, b: 3 });
    assert.equal(result.tool_use_id, use.id);
    assert.equal(result.content[0].text, 'the sum is 5');
    assert.equal(answer.stop_reason, 'end_turn');
    assert.ok(answer.usage.input_tokens > 0 && answer.usage.output_tokens > 0);
  };

  test(`messages: ${name}`, async () => {
    const body = { model, max_tokens: 200, tools: [tool] };
    const answer = await messages.create({ ...body, messages: [{ role: 'user', content: ask }] });
    checkMessage(answer);
    const next = await messages.create({ ...body, messages: [{ role: 'user', content: ask }, { role: 'assistant', content: answer.content }, { role: 'user', content: 'mock: no-tools say=Five\nSo?' }] });
    assert.equal(next.content.at(-1).text, 'Five');
  });

  test(`streamed messages: ${name}`, async () => {
    const stream = messages.stream({ model, max_tokens: 200, tools: [tool], messages: [{ role: 'user', content: ask }] });
    checkMessage(await stream.finalMessage());
  });
}

test('a server that is not there', async () => {
  const other = [{ type: 'mcp', server_label: '@gateway-mcp/nothing' }];
  await assert.rejects(openai('@mock', { defaultHeaders: { 'x-gateway-provider': '@mock', ...beta } }).responses.create({ model: 'gpt-4o', input: 'x', tools: other }), (e) => e.status === 404 && /tools\[0\]/.test(e.param ?? e.message));
});
