// What the gateway serves of SCIM, held against an implementation of the RFCs that
// shares no code with it: its schemas take every resource, and its PATCH makes of one
// what the gateway's makes.
import test from 'node:test';
import assert from 'node:assert/strict';
import SCIMMY from 'scimmy';
import { gatewayURL } from '../support.mjs';

const { User, Group, EnterpriseUser, ResourceType, ServiceProviderConfig } = SCIMMY.Schemas;
User.extend(EnterpriseUser);
const adminKey = process.env.GATEWAY_ADMIN_KEY;
const enterprise = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';

async function call(method, path, headers, body) {
  const res = await fetch(gatewayURL + path, { method, headers: { ...headers, ...(body ? { 'content-type': headers.type ?? 'application/json' } : {}) }, body: body && JSON.stringify(body) });
  const text = await res.text();
  return { status: res.status, type: res.headers.get('content-type'), tag: res.headers.get('etag'), json: text ? JSON.parse(text) : null };
}
const admin = async (method, path, body) => {
  const got = await call(method, path, { 'x-gateway-api-key': adminKey }, body);
  assert.equal(got.status, 200, JSON.stringify(got.json));
  return got.json;
};
const { token } = await admin('POST', '/scim/tokens', { name: 'strict peer' });
const scim = async (status, method, path, body) => {
  const got = await call(method, '/scim' + path, { authorization: `Bearer ${token}`, type: 'application/scim+json' }, body);
  assert.equal(got.status, status, JSON.stringify(got.json));
  return got;
};

// valid fails for a resource that a schema does not take as it is, to the last attribute.
function valid(schema, resource) {
  const read = JSON.parse(JSON.stringify(schema.definition.coerce(structuredClone(resource), 'out')));
  assert.deepEqual(read, resource);
  return resource;
}

// patched is a resource after a PATCH, by the other implementation.
async function patched(schema, resource, operations) {
  const message = new SCIMMY.Messages.PatchOp({ schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations: structuredClone(operations) });
  return JSON.parse(JSON.stringify((await message.apply(new schema(structuredClone(resource), 'out'))) ?? resource));
}

// content is a resource without what only the gateway knows.
const content = ({ meta, ...rest }) => rest;

const invited = await admin('POST', '/admin/users/invites', { email: 'strict.peer@example.com', role: 'admin', workspaces: [] });
await call('POST', '/invites/accept?' + invited.invite_link.split('?')[1], {}, { first_name: 'Ann', last_name: 'Lee' });

test('what is served describes itself', async () => {
  const { authenticationSchemes: [{ primary, ...scheme }], ...config } = (await scim(200, 'GET', '/ServiceProviderConfig')).json;
  assert.equal(primary, true); // as in RFC 7643, section 8.5; the other implementation does not know it
  valid(ServiceProviderConfig, { ...config, authenticationSchemes: [scheme] });
  const types = (await scim(200, 'GET', '/ResourceTypes')).json;
  assert.equal(types.totalResults, 2);
  for (const type of types.Resources) valid(ResourceType, type);
  const schemas = (await scim(200, 'GET', '/Schemas')).json.Resources;
  for (const theirs of [User, Group, EnterpriseUser]) {
    const ours = schemas.find((s) => s.id === theirs.definition.id);
    for (const a of ours.attributes) {
      const same = theirs.definition.attributes.find((b) => b.name === a.name);
      assert.ok(same, `${ours.name} has no ${a.name}`);
      assert.equal(a.type, same.type, a.name);
      assert.equal(a.multiValued, !!same.config.multiValued, a.name);
    }
  }
});

test('users are what the RFC says, before and after a PATCH', async () => {
  const found = (await scim(200, 'GET', '/Users?filter=' + encodeURIComponent('userName eq "STRICT.PEER@example.com"'))).json;
  assert.equal(found.totalResults, 1);
  let user = valid(User, found.Resources[0]);
  for (const operations of [
    [{ op: 'replace', path: 'name.familyName', value: 'Smith' }, { op: 'replace', path: 'displayName', value: 'Ann Smith' }, { op: 'replace', path: 'name.formatted', value: 'Ann Smith' }],
    [{ op: 'add', path: 'phoneNumbers', value: [{ value: 'tel:+1-555', type: 'work' }] }],
    [{ op: 'add', value: { title: 'Engineer', nickName: 'Annie', locale: 'en-US' } }],
    [{ op: 'replace', path: 'phoneNumbers[type eq "work"].value', value: 'tel:+1-556' }],
    [{ op: 'add', path: 'emails', value: [{ value: 'ann@home.example', type: 'home' }] }],
    [{ op: 'remove', path: 'emails[type eq "home"]' }],
    [{ op: 'remove', path: 'nickName' }, { op: 'remove', path: 'phoneNumbers' }],
    [{ op: 'add', path: `${enterprise}:department`, value: 'Sales' }],
    [{ op: 'replace', path: 'active', value: false }],
    [{ op: 'replace', value: { active: true } }],
  ]) {
    const want = content(await patched(User, user, operations));
    user = valid(User, (await scim(200, 'PATCH', `/Users/${user.id}`, { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations: operations })).json);
    assert.deepEqual(content(user), want, JSON.stringify(operations));
  }
});

test('groups are what the RFC says, before and after a PATCH', async () => {
  const { id } = (await scim(200, 'GET', '/Users?filter=' + encodeURIComponent('userName eq "strict.peer@example.com"'))).json.Resources[0];
  let group = (await scim(201, 'POST', '/Groups', { schemas: ['urn:ietf:params:scim:schemas:core:2.0:Group'], displayName: 'Strict peers', members: [{ value: id }] })).json;
  valid(Group, group);
  const renamed = [{ op: 'replace', path: 'displayName', value: 'Peers' }];
  const want = content(await patched(Group, group, renamed));
  group = valid(Group, (await scim(200, 'PATCH', `/Groups/${group.id}`, { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations: renamed })).json);
  assert.deepEqual(content(group), want);
  const removed = (await scim(200, 'PATCH', `/Groups/${group.id}`, { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations: [{ op: 'remove', path: `members[value eq "${id}"]` }] })).json;
  assert.deepEqual(removed.members, []);
  await scim(204, 'DELETE', `/Groups/${group.id}`);
});

test('refusals are in the form of the protocol', async () => {
  for (const [status, method, path, body] of [
    [404, 'GET', '/Users/nobody'], [400, 'GET', '/Users?filter=' + encodeURIComponent('userName xx "a"')], [400, 'POST', '/Users', { schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'] }],
    [400, 'POST', '/Groups', { displayName: 'x', members: [{ value: 'nobody' }] }], [501, 'POST', '/Bulk', {}],
  ]) {
    const got = await scim(status, method, path, body);
    assert.match(got.type, /^application\/scim\+json/);
    const { schemas, status: told, scimType, detail } = got.json;
    assert.deepEqual(schemas, ['urn:ietf:params:scim:api:messages:2.0:Error']);
    assert.equal(told, String(status));
    new SCIMMY.Messages.ErrorResponse({ status: told, ...(scimType ? { scimType } : {}), detail }); // throws for a pair that the RFC does not have
  }
});
