// Parts of the organization: provisioning, verification, exports and settings of workspaces.
import { useState } from "preact/hooks";
import { call, can, who } from "./api";
import { count, date, since } from "./format";
import { Remove } from "./remove";
import { Section } from "./admin";
import { Badge, Confirm, Copy, ErrorView, Facts, failureOf, Head, Shown, State, Table, useCalls } from "./ui";

type P = { row: any; again: () => void };
type Told = { good: boolean; text: string };

// Verify is a button that checks something and tells what came out.
function Verify({ label, path, told, done }: { label: string; path: string; told: (r: any) => Told; done?: () => void }) {
  const [got, set] = useState<Told>(), [failure, fail] = useState<any>(), [busy, work] = useState(false);
  const run = async () => { work(true); fail(undefined); set(undefined); try { set(told(await call(path, {}, { method: "POST", body: {} }))); done?.(); } catch (e) { fail(failureOf(e)); } work(false); };
  return <><p class="row"><button type="button" disabled={busy} onClick={run}>{busy ? "Verifying…" : label}</button>{got && <span role="status"><Badge text={got.text} tone={got.good ? "good" : "bad"} /></span>}</p>{failure && <ErrorView failure={failure} />}</>;
}

const took = (r: any) => r.latency_ms ?? r.response_time_ms;

export const SecretDetail = ({ row }: P) => <Verify label="Verify" path={"/secret-references/" + row.id + "/verify"} told={(r) => ({ good: r.success, text: r.success ? "The secret can be read, in " + took(r) + " ms" : r.message || "The secret cannot be read" })} />;

export const DeploymentDetail = ({ row, again }: P) => can(["deployments.update"], "admin") ? <Verify label="Verify" path={"/deployments/" + row.id + "/verify"} done={again} told={(r) => ({ good: r.success, text: r.success ? "It responds, in " + took(r) + " ms" : r.error || "It does not respond" })} /> : null;

export function DomainDetail({ row, again }: P) {
  return <><p>Publish this TXT record, then verify it. Users with addresses of the domain may sign in afterwards.</p><Facts of={[["Name", <code>{row.txt_name}</code>], ["Value", <code>{row.txt_value}</code>], ["Verified", row.verified_at ? date(row.verified_at) : "not yet"]]} /><p class="row"><Copy label="Copy the value" text={row.txt_value} /></p>
    {can(["organisation_settings.update"], "admin") && <Verify label="Verify" path={"/auth/domains/" + row.id + "/verify"} done={again} told={() => ({ good: true, text: "Verified" })} />}</>;
}

export function SSODetail({ row, again }: P) {
  const org = who().organisation_id ?? "";
  return <><Facts of={row.protocol === "saml" ? [["Assertion consumer service", <code>{location.origin}/v1/auth/saml/{org}/acs</code>], ["Metadata of this service", <code>{location.origin}/v1/auth/saml/{org}/metadata</code>]] : [["Redirect address", <code>{location.origin}/v1/auth/callback/{org}</code>]]} />
    {can(["organisation_settings.update"], "admin") && <Verify label="Verify" path={"/auth/sso-configurations/" + row.id + "/verify"} done={again} told={(r) => ({ good: r.success !== false, text: r.success === false ? r.message ?? "The identity provider cannot be reached" : "The identity provider responds" })} />}</>;
}

export function WorkspaceDetail({ row }: P) {
  const at = "/admin/workspaces/" + row.slug + "/settings";
  const got = useCalls("settings of " + row.slug, (s) => call(at, {}, { signal: s }));
  return <><h2>Settings</h2><p class="quiet">Each value comes from the workspace, from the organization, or is the standard.</p><State of={got}>{(v) => Object.entries(v).filter(([k, x]) => k !== "origins" && x && typeof x === "object").map(([k, x]) => <Section name={k} value={x} at={at} origins={v.origins} saved={got.again} key={k + JSON.stringify(x)} />)}</State></>;
}

// Provisioning shows what an identity provider may do by SCIM, and what it did.
export function Provisioning() {
  const [tab, show] = useState("tokens");
  return <><Head title="Who is provisioned?" /><p class="tabs">{[["tokens", "Tokens"], ["groups", "Groups"]].map(([k, t]) => <button type="button" aria-pressed={tab === k} onClick={() => show(k)}>{t}</button>)}</p>{tab === "tokens" ? <Tokens /> : <Groups />}</>;
}

const writes = () => can(["organisation_settings.update"], "admin");

function Tokens() {
  const got = useCalls("scim tokens", (s) => call("/scim/tokens", {}, { signal: s }));
  const [token, show] = useState(""), [name, rename] = useState("");
  return <>{token && <Shown name="The new SCIM token" secret={token} done={() => show("")} />}<p>The identity provider calls <code>{location.origin}/v1/scim</code> with a token.</p>
    {writes() && <p class="row"><Confirm label="Create a token" title="Create a SCIM token" tone="main" action={async () => { const r = await call("/scim/tokens", {}, { method: "POST", body: { name: name.trim() } }); rename(""); show(r.token); got.again(); }}><div class="field"><label for="scim">Name</label><input id="scim" required autofocus value={name} onInput={(e: any) => rename(e.target.value)} /></div></Confirm></p>}
    <State of={got}>{(tokens) => tokens.data.length === 0 ? <p class="quiet">There is no token. Create one and give it to the identity provider.</p> : <Table label="Tokens" rows={tokens.data} columns={[["Name", (t: any) => t.name], ["Token", (t: any) => <code>{t.masked_token}</code>], ["Status", (t: any) => <Badge text={t.status} />], ["Created", (t: any) => date(t.created_at)], ["", (t: any) => writes() && <Remove label="Revoke" name={t.name} path={"/scim/tokens/" + t.id} done={got.again}><p>It becomes invalid within two seconds.</p></Remove>]]} />}</State></>;
}

function Groups() {
  const got = useCalls("scim groups", (s) => Promise.all([call("/scim/groups", { page_size: "100" }, { signal: s }), call("/scim/workspaces", { page_size: "100" }, { signal: s })]));
  const [group, choose] = useState(""), [room, enter] = useState(who().workspaces[0]?.id ?? ""), [role, give] = useState("member");
  const roomOf = (id: string) => who().workspaces.find((w) => w.id === id)?.name ?? id;
  return <State of={got}>{([groups, { mappings }]) => <>{groups.data.length === 0 ? <p class="quiet">The identity provider has sent no group.</p> : <Table label="Groups" rows={groups.data} columns={[["Name", (g: any) => g.name], ["Role", (g: any) => g.role ?? "–"], ["Workspaces", (g: any) => count(g.mappings), "n"], ["Changed", (g: any) => since(g.last_updated_at)]]} />}
    <header><h2>Workspaces of groups</h2>{writes() && groups.data.length > 0 && <Confirm label="Map a group" title="Map a group to a workspace" tone="plain" action={async () => { await call("/scim/workspaces", {}, { method: "POST", body: { scim_group_id: group || groups.data[0].id, workspace_id: room, role } }); got.again(); }}><p>Its members join the workspace.</p>
      <div class="field"><label for="group">Group</label><select id="group" value={group || groups.data[0].id} onChange={(e: any) => choose(e.target.value)}>{groups.data.map((g: any) => <option value={g.id}>{g.name}</option>)}</select></div>
      <div class="field"><label for="in">Workspace</label><select id="in" value={room} onChange={(e: any) => enter(e.target.value)}>{who().workspaces.map((w) => <option value={w.id}>{w.name}</option>)}</select></div>
      <div class="field"><label for="role">Role</label><select id="role" value={role} onChange={(e: any) => give(e.target.value)}><option value="member">Member</option><option value="manager">Manager</option><option value="admin">Admin</option></select></div></Confirm>}</header>
    {mappings.length === 0 ? <p class="quiet">No group is mapped to a workspace.</p> : <Table label="Workspaces of groups" rows={mappings} columns={[["Group", (m: any) => m.scim_group ?? m.scim_group_id], ["Workspace", (m: any) => roomOf(m.workspace_id)], ["Role", (m: any) => m.role], ["Status", (m: any) => <Badge text={m.status} />], ["", (m: any) => writes() && <Remove name={"the mapping of " + (m.scim_group ?? "the group")} path={"/scim/workspaces/" + m.id} done={got.again}><p>Users who joined by it remain in the workspace.</p></Remove>]]} />}</>}</State>;
}

const size = (n: number) => n >= 1e6 ? (n / 1e6).toFixed(1) + " MB" : (n / 1e3).toFixed(1) + " kB";

export function ExportDetail({ row, again }: P) {
  const at = "/logs/exports/" + row.id, place = { workspace_id: row.workspace_id };
  const [failure, fail] = useState<any>();
  const act = async (verb: string) => { fail(undefined); try { await call(at + "/" + verb, place, { method: "POST" }); again(); } catch (e) { fail(failureOf(e)); } };
  // The link leads to a file, which the browser stores without leaving the page.
  const load = async () => { fail(undefined); try { location.assign((await call(at + "/download", place)).signed_url); } catch (e) { fail(failureOf(e)); } };
  const status = row.status;
  return <>{failure && <ErrorView failure={failure} />}<Facts of={[["Format", row.format], ["Rows", row.rows == null ? null : count(row.rows)], ["Size", row.bytes ? size(row.bytes) : null], ["Ended", row.ended_at && date(row.ended_at)], ["Kept until", row.expires_at && date(row.expires_at)], ["Error", row.error]]} />
    <p class="row">{status === "draft" && <button type="button" class="main" onClick={() => act("start")}>Start</button>}{["in_progress", "running", "queued", "pending"].includes(status) && <><button type="button" onClick={again}>Refresh</button><button type="button" onClick={() => act("cancel")}>Cancel</button></>}{["success", "completed"].includes(status) && <button type="button" class="main" onClick={load}>Download</button>}</p></>;
}
