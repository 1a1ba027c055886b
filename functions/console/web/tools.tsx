// The page of an MCP server.
import { useState } from "preact/hooks";
import { call, can, room } from "./api";
import { date, json, millis } from "./format";
import { JSONText } from "./form";
import { keyForModels, ModelKey } from "./modelkey";
import { Badge, Confirm, ErrorView, Facts, failureOf, State, Table, Text, useCalls } from "./ui";

type P = { row: any; again: () => void };

export function MCPDetail({ row }: P) {
  const at = "/mcp-servers/" + row.id, place = { workspace_id: room() };
  const got = useCalls("capabilities " + row.id, (s) => Promise.all([call(at + "/capabilities", { ...place, page_size: "500" }, { signal: s }), call(at + "/metadata", place, { signal: s })]));
  const [tab, show] = useState("tools"), [result, set] = useState<any>(), [failure, fail] = useState<any>(), [busy, begin] = useState(false);
  const writes = can(["mcp_servers.update"], "manager");
  const attempt = async (work: () => Promise<any>) => { begin(true); fail(undefined); try { await work(); } catch (e) { fail(failureOf(e)); } begin(false); };
  const test = () => attempt(async () => { const from = performance.now(); set({ ...await call(at + "/test", place, { method: "POST" }), took: performance.now() - from }); got.again(); });
  const turn = (c: any) => attempt(async () => { await call(at + "/capabilities", place, { method: "PUT", body: { capabilities: [{ name: c.name, type: c.type, enabled: !c.enabled }] } }); got.again(); });
  const tabs: [string, string][] = [["tools", "Tools, prompts and resources"], ["play", "Try a tool"], ["connections", "Connections"], ["access", "Access of users"]];
  return <>{writes && <p class="row"><button type="button" disabled={busy} onClick={test}>{busy ? "Waiting for the server…" : "Test the connection"}</button><button type="button" disabled={busy} onClick={() => attempt(async () => { await call(at + "/capabilities/sync", place, { method: "POST" }); got.again(); })}>Sync</button></p>}
    {failure && <ErrorView failure={failure} />}{result && <><Text label="Result of the test" value={result} /><p class="quiet">It took {millis(result.took)}.</p></>}
    <State of={got}>{([list, about]) => <><Facts of={[["Server", [about.server_name, about.server_version].filter(Boolean).join(" ")], ["Protocol", about.protocol_version], ["Sync", <Badge text={about.sync_status ?? "pending"} />], ["Synced", date(about.last_synced_at)], ["Reason", about.sync_error]]} />
      <p class="tabs">{tabs.map(([k, t]) => <button type="button" aria-pressed={tab === k} onClick={() => show(k)}>{t}</button>)}</p>
      {tab === "tools" && (!list.data?.length ? <p class="quiet">The server has not listed anything yet. Test the connection to see why.</p> : <Table label="Capabilities" rows={list.data} columns={[["Name", (r: any) => r.name], ["Type", (r: any) => r.type.replaceAll("_", " ")], ["Enabled", (r: any) => <Badge text={r.enabled ? "active" : "inactive"} />], ["Description", (r: any) => r.description ?? "–"],
        ["", (r: any) => writes && r.type !== "resource_template" && r.integration_enabled !== false && <button type="button" aria-label={(r.enabled ? "Disable " : "Enable ") + r.name} disabled={busy} onClick={() => turn(r)}>{r.enabled ? "Disable" : "Enable"}</button>]]} />)}
      {tab === "play" && <Play row={row} tools={(list.data ?? []).filter((c: any) => c.type === "tool" && c.enabled)} />}
      {tab === "connections" && <Connections at={at} />}{tab === "access" && <Access at={at} writes={writes} />}</>}</State></>;
}

// sample is a value that a schema allows, as far as its types and defaults say.
function sample(schema: any, depth = 0): any {
  if (!schema || typeof schema !== "object" || depth > 4) return null;
  if (schema.default !== undefined) return schema.default;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "object" || schema.properties) return Object.fromEntries(Object.entries(schema.properties ?? {}).filter(([k]) => !schema.required || schema.required.includes(k)).map(([k, v]) => [k, sample(v, depth + 1)]));
  return ({ string: "", number: 0, integer: 0, boolean: false, array: [] } as any)[type] ?? null;
}

const version = "2026-07-28"; // of the protocol: requests of it stand alone, without a session

// Play calls one tool with the user's own key, as a client does.
function Play({ row, tools }: { row: any; tools: any[] }) {
  const [name, pick] = useState(tools[0]?.name ?? ""), tool = tools.find((t) => t.name === name);
  const [args, fill] = useState(json(sample(tool?.input_schema) ?? {})), [result, set] = useState<any>(), [failure, fail] = useState<any>(), [busy, work] = useState(false);
  if (tools.length === 0) return <p class="quiet">No tool of this server is enabled.</p>;
  const run = async (e: any) => {
    e.preventDefault();
    work(true); fail(undefined); set(undefined);
    const begin = performance.now();
    try {
      const r = await call("/mcp/" + encodeURIComponent(row.slug) + "/mcp", {}, {
        method: "POST", key: keyForModels(), headers: { accept: "application/json, text/event-stream", "mcp-protocol-version": version, "mcp-method": "tools/call", "mcp-name": name },
        body: { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: JSON.parse(args), _meta: { "io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {} } } },
      });
      set({ answer: r.error ?? r.result, failed: !!r.error || r.result?.isError, took: performance.now() - begin });
    } catch (x) { fail(failureOf(x)); }
    work(false);
  };
  return <><form class="form" onSubmit={run}><ModelKey /><div class="field"><label for="tool">Tool</label><select id="tool" value={name} onChange={(e: any) => { pick(e.target.value); fill(json(sample(tools.find((t) => t.name === e.target.value)?.input_schema) ?? {})); }}>{tools.map((t) => <option value={t.name}>{t.title ?? t.name}</option>)}</select>{tool?.description && <small>{tool.description}</small>}</div>
    <div class="field"><label for="arguments">Arguments</label><JSONText id="arguments" rows={6} value={args} change={fill} /></div>{tool?.input_schema && <details><summary>Schema of the arguments</summary><Text label="Schema" value={tool.input_schema} /></details>}
    {failure && <ErrorView failure={failure} />}<p class="row"><button class="main" disabled={busy}>{busy ? "Calling…" : "Call the tool"}</button></p></form>
    {result && <section class="panel" aria-label="Result of the tool"><p role="status"><Badge text={result.failed ? "The tool failed" : "The tool responded"} tone={result.failed ? "bad" : "good"} /> <span class="quiet">{millis(result.took)}</span></p><Text label="Response of the tool" value={result.answer} /></section>}</>;
}

function Connections({ at }: { at: string }) {
  const got = useCalls("connections " + at, (s) => call(at + "/connections", { workspace_id: room() }, { signal: s }));
  return <State of={got}>{(v) => v.data.length === 0 ? <p class="quiet">No user has signed in to this server.</p> : <Table label="Connections" rows={v.data} columns={[["User", (r: any) => <code>{r.user_id}</code>], ["State", (r: any) => <Badge text={r.connected ? "active" : "inactive"} />], ["Since", (r: any) => date(r.created_at)]]} />}</State>;
}

function Access({ at, writes }: { at: string; writes: boolean }) {
  const got = useCalls("access " + at, (s) => call(at + "/user-access", { workspace_id: room() }, { signal: s }));
  const change = async (r: any) => { await call(at + "/user-access", { workspace_id: room() }, { method: "PUT", body: { user_access: [{ user_id: r.user_id, enabled: !r.enabled }] } }); got.again(); };
  return <State of={got}>{(v) => <><p class="quiet">Users without an entry of their own: {v.default_user_access === "allow" ? "allowed" : "not allowed"}.</p>{v.data.length === 0 ? <p class="quiet">The workspace has no members.</p> : <Table label="Access of users" rows={v.data} columns={[["User", (r: any) => [r.first_name, r.last_name].filter(Boolean).join(" ") || <code>{r.user_id}</code>], ["Access", (r: any) => <Badge text={r.enabled ? "active" : "inactive"} />], ["Set for this user", (r: any) => r.has_override ? "yes" : "no"], ["Signed in", (r: any) => r.connection_status === "connected" ? "yes" : "no"],
    ["", (r: any) => writes && <Confirm label={r.enabled ? "Deny" : "Allow"} title={(r.enabled ? "Deny" : "Allow") + " access to this user?"} tone="plain" action={() => change(r)} />]]} />}</>}</State>;
}
