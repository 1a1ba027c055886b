// The library of the agent protocol as client and as server, in both of its versions,
// with the gateway between them.
import { test, before, after } from 'node:test';
import assert from 'node:assert/strict';
import { createPublicKey, randomUUID } from 'node:crypto';
import express from 'express';
import * as newer from '@a2a-js/sdk/client';
import { DefaultRequestHandler, InMemoryTaskStore, AgentEvent } from '@a2a-js/sdk/server';
import * as newerExpress from '@a2a-js/sdk/server/express';
import { AgentCard, Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent, SendMessageRequest, GetTaskRequest, verifyAgentCardSignature } from '@a2a-js/sdk';
import * as older from 'a2a-older/client';
import { DefaultRequestHandler as OlderHandler, InMemoryTaskStore as OlderStore } from 'a2a-older/server';
import * as olderExpress from 'a2a-older/server/express';
import { gatewayURL, gatewayKey } from '../support.mjs';

const adminKey = process.env.GATEWAY_ADMIN_KEY;
const servers = [];

const heard = (message) => (message.parts ?? []).map((p) => p.text ?? (p.content?.$case === 'text' ? p.content.value : '')).join('');

// The agent of 1.0 says what it heard: as a message, or, when told to work, as a task.
const newerExecutor = {
  async execute(context, bus) {
    const said = heard(context.userMessage);
    const { taskId, contextId } = context;
    const part = { text: `heard ${said}` };
    if (!said.startsWith('work')) {
      bus.publish(AgentEvent.message(Message.fromJSON({ messageId: randomUUID(), contextId, role: 'ROLE_AGENT', parts: [part] })));
      bus.finished();
      return;
    }
    bus.publish(AgentEvent.task(Task.fromJSON({ id: taskId, contextId, status: { state: 'TASK_STATE_WORKING' }, history: [Message.toJSON(context.userMessage)] })));
    bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON({ taskId, contextId, artifact: { artifactId: 'a', parts: [part] } })));
    bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ taskId, contextId, status: { state: 'TASK_STATE_COMPLETED' } })));
    bus.finished();
  },
  async cancelTask() {},
};

// That of 0.3 does the same.
const olderExecutor = {
  async execute(context, bus) {
    const said = heard(context.userMessage);
    const { taskId, contextId } = context;
    const part = { kind: 'text', text: `heard ${said}` };
    if (!said.startsWith('work')) {
      bus.publish({ kind: 'message', messageId: randomUUID(), contextId, role: 'agent', parts: [part] });
      bus.finished();
      return;
    }
    bus.publish({ kind: 'task', id: taskId, contextId, status: { state: 'working' }, history: [context.userMessage] });
    bus.publish({ kind: 'artifact-update', taskId, contextId, artifact: { artifactId: 'a', parts: [part] } });
    bus.publish({ kind: 'status-update', taskId, contextId, status: { state: 'completed' }, final: true });
    bus.finished();
  },
  async cancelTask() {},
};

const about = { name: 'Agent', description: 'Says what it hears.', version: '1', defaultInputModes: ['text'], defaultOutputModes: ['text'], skills: [{ id: 'say', name: 'Say', description: '', tags: [] }], capabilities: { streaming: true, pushNotifications: false } };

async function listen(app) {
  const server = await new Promise((done) => {
    const s = app.listen(0, '127.0.0.1', () => done(s));
  });
  servers.push(server);
  return `http://127.0.0.1:${server.address().port}`;
}

async function admin(path, body) {
  const answer = await fetch(gatewayURL + path, { method: 'POST', headers: { 'x-gateway-api-key': adminKey, 'content-type': 'application/json' }, body: JSON.stringify(body) });
  assert.ok(answer.ok, `${path}: ${answer.status} ${await answer.clone().text()}`);
  return answer.json();
}

// agent starts one that speaks a version in one binding, and registers it.
async function agent(version, binding) {
  const app = express();
  const base = await listen(app);
  const path = binding === 'JSONRPC' ? '/rpc' : '/rest';
  if (version === '1.0') {
    const card = AgentCard.fromJSON({ ...about, supportedInterfaces: [{ url: base + path, protocolBinding: binding, protocolVersion: '1.0' }] });
    const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), newerExecutor);
    const options = { requestHandler: handler, userBuilder: newerExpress.UserBuilder.noAuthentication };
    app.get('/.well-known/agent-card.json', (_req, res) => res.json(AgentCard.toJSON(card)));
    app.use(path, binding === 'JSONRPC' ? newerExpress.jsonRpcHandler(options) : newerExpress.restHandler(options));
  } else {
    const card = { ...about, protocolVersion: '0.3.0', url: base + path, preferredTransport: binding };
    const handler = new OlderHandler(card, new OlderStore(), olderExecutor);
    const options = { requestHandler: handler, userBuilder: olderExpress.UserBuilder.noAuthentication };
    app.get('/.well-known/agent-card.json', (_req, res) => res.json(card));
    app.use(path, binding === 'JSONRPC' ? olderExpress.jsonRpcHandler(options) : olderExpress.restHandler(options));
  }
  const slug = `agent-${version.replace('.', '-')}-${binding === 'JSONRPC' ? 'rpc' : 'rest'}`;
  await admin('/agent-integrations', { name: slug, slug, url: base, workspace_id: 'default' });
  await admin('/agent-servers', { name: slug, slug, agent_integration_id: slug, workspace_id: 'default' });
  return `${gatewayURL}/agent/${slug}`;
}

const keyed = (url, options = {}) => {
  const headers = new Headers(options.headers);
  headers.set('x-gateway-api-key', gatewayKey);
  return fetch(url, { ...options, headers });
};

// client makes one of a version for one binding, by the card that the gateway shows.
async function client(url, version, binding) {
  const of = version === '1.0' ? newer : older;
  const factory = new of.ClientFactory({
    transports: [binding === 'JSONRPC' ? new of.JsonRpcTransportFactory({ fetchImpl: keyed }) : new of.RestTransportFactory({ fetchImpl: keyed })],
    preferredTransports: [binding],
    cardResolver: new of.DefaultAgentCardResolver({ fetchImpl: keyed }),
  });
  return factory.createFromUrl(`${url}/`);
}

const versions = ['1.0', '0.3'];
const bindings = ['JSONRPC', 'HTTP+JSON'];
const agents = {};

before(async () => {
  for (const version of versions) for (const binding of bindings) agents[`${version} ${binding}`] = await agent(version, binding);
});

after(() => {
  for (const s of servers) {
    s.closeAllConnections();
    s.close();
  }
});

for (const at of versions) for (const by of bindings) {
  for (const version of versions) for (const binding of bindings) {
    test(`a client of ${version} by ${binding} at an agent of ${at} by ${by}`, async () => {
      const c = await client(agents[`${at} ${by}`], version, binding);
      const say = (text) => version === '1.0'
        ? SendMessageRequest.fromJSON({ message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }] } })
        : { message: { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text }] } };

      const message = await c.sendMessage(say('hello'));
      assert.ok(JSON.stringify(message).includes('heard hello'), JSON.stringify(message));

      let task = await c.sendMessage(say('work'));
      assert.ok(task.id && JSON.stringify(task).includes('heard work'), JSON.stringify(task));
      task = await c.getTask(version === '1.0' ? GetTaskRequest.fromJSON({ id: task.id }) : { id: task.id });
      assert.equal(version === '1.0' ? Task.toJSON(task).status.state : task.status.state, version === '1.0' ? 'TASK_STATE_COMPLETED' : 'completed');
      assert.ok(JSON.stringify(task.artifacts).includes('heard work'));

      const events = [];
      for await (const event of c.sendMessageStream(say('work in a stream'))) events.push(event);
      const all = JSON.stringify(events);
      assert.ok(events.length >= 3 && all.includes('heard work in a stream'), all);

      await assert.rejects(c.getTask(version === '1.0' ? GetTaskRequest.fromJSON({ id: 'nothing' }) : { id: 'nothing' }), /not found|-32001/i);
    });
  }
}

for (const at of versions) {
  test(`the card of an agent of ${at} is signed by the gateway`, async () => {
    const url = agents[`${at} JSONRPC`];
    const card = await new newer.DefaultAgentCardResolver({ fetchImpl: keyed }).resolve(`${url}/`);
    const sets = [];
    const verify = verifyAgentCardSignature(async (kid, jku) => {
      sets.push(jku);
      const { keys } = await (await fetch(jku)).json();
      return createPublicKey({ key: keys.find((k) => k.kid === kid), format: 'jwk' });
    });
    await verify(card);
    assert.equal(sets[0], `${gatewayURL}/.well-known/jwks.json`);
    await assert.rejects(verify({ ...card, description: 'Another.' }), /valid signatures/);
  });
}
