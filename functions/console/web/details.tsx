// What pages of single resources show beside their facts.
import { useState } from "preact/hooks";
import { call, can, room } from "./api";
import { count, date, dollars, json, millis, since } from "./format";
import { JSONText } from "./form";
import { Badge, between, Confirm, Diff, ErrorView, Facts, failureOf, Link, Shown, State, Table, Text, useCalls } from "./ui";

type P = { row: any; again: () => void };

// modelKey is a workspace key for calls of models. It is held in the memory of the tab.
let modelKey = "";
export const keyForModels = () => modelKey;
export function ModelKey({ id = "model-key" }: { id?: string }) {
  const [, typed] = useState(modelKey);
  return <div class="field"><label for={id}>Workspace key</label><input id={id} type="password" autocomplete="off" value={modelKey} onInput={(e: any) => { modelKey = e.target.value.trim(); typed(modelKey); }} />
    <small>Models are called with a key of a workspace, so that its limits apply. It stays in the memory of this tab.</small></div>;
}

export function KeyDetail({ row, again }: P) {
  const [secret, show] = useState("");
  const [overlap, set] = useState("1800000");
  const used = useCalls("key use " + row.id, (s) => can(["analytics.view"]) ? call("/analytics/groups/model", { ...between("24h"), api_key_ids: row.id, columns: "cost,error_count,last_seen" }, { signal: s }) : Promise.resolve({ data: [] }));
  const family = row.type.replaceAll("-", "_") + "_api_keys";
  const rotate = async () => {
    const r = await call("/api-keys/" + row.id + "/rotate", {}, { method: "POST", body: { key_transition_period_ms: Number(overlap) } });
    show(r.key); again();
  };
  return <>{secret && <Shown name="The new secret" secret={secret} done={() => show("")} />}
    <Facts of={[["Last used", used.value ? (used.value.data.reduce((a: string, u: any) => u.last_seen > a ? u.last_seen : a, "") || "not in the last 24 hours") : "…"], ["Scopes", (row.scopes ?? []).join(", ")], ["Budget", row.usage_limits ? dollars(row.usage_limits.credit_limit) : "none"], ["Settled", row.usage_limits ? dollars(row.usage_limits.current_usage) : ""], ["Reserved", row.usage_limits ? dollars(row.usage_limits.reserved_usage) : ""], ["Left", row.usage_limits ? dollars(row.usage_limits.available) : ""], ["Former secret ends", row.key_transition_expires_at ? date(row.key_transition_expires_at) : ""]]} />
    {can([family + ".rotate"]) && row.status === "active" && <div class="panel"><h2>Rotate</h2><p>Creates a new secret. The former one stays valid for a time, so that no request fails.</p>
      <p class="row"><label>Overlap <select value={overlap} onChange={(e: any) => set(e.target.value)}><option value="1800000">30 minutes</option><option value="3600000">1 hour</option><option value="86400000">1 day</option><option value="604800000">7 days</option></select></label>
        <Confirm label="Rotate" title="Rotate this key?" tone="plain" action={rotate}><p>Clients need the new secret before the overlap ends.</p></Confirm></p></div>}
    <h2>Used in the last 24 hours</h2><State of={used}>{(u) => u.data.length === 0 ? <p class="quiet">No request used this key.</p> : <Table label="Use of the key" rows={u.data} columns={[["Model", (r: any) => r.model], ["Requests", (r: any) => count(r.requests), "n"], ["Errors", (r: any) => count(r.error_count), "n"], ["Spend", (r: any) => dollars(r.cost / 100), "n"]]} />}</State></>;
}

export function BudgetDetail({ row, again }: P) {
  const at = "/policies/usage-limits/" + row.id;
  const got = useCalls("entities " + row.id, (s) => call(at + "/entities", { workspace_id: room() }, { signal: s }));
  const show = (n: number) => row.type === "cost" ? dollars(n) : count(n);
  const start = Date.parse(row.last_reset_at ?? row.created_at), days = Math.max((Date.now() - start) / 86400_000, 1 / 24);
  const runway = (e: any) => e.current_usage > 0 ? (e.available / (e.current_usage / days)).toFixed(1) + " days" : "–";
  return <><Facts of={[["Limit", show(row.credit_limit)], ["Next reset", (row.next_reset_at ?? row.next_usage_reset_at) ? date((row.next_reset_at ?? row.next_usage_reset_at)) : "never"], ["Temporary raise", row.temporary_raise ? json(row.temporary_raise) : "none"]]} />
    <h2>Counters</h2><State of={got}>{(e) => e.data.length === 0 ? <p class="quiet">Nothing has been counted yet.</p> : <Table label="Counters" rows={e.data} columns={[
      ["For", (r: any) => <code>{r.value_key}</code>], ["Status", (r: any) => <Badge text={r.status} />], ["Settled", (r: any) => show(r.current_usage), "n"], ["Reserved", (r: any) => show(r.reserved_usage), "n"], ["Left", (r: any) => show(r.available), "n"], ["Runway", runway, "n"],
      ["", (r: any) => can(["policies.update"], "manager") && <Confirm label="Reset" title="Reset this counter?" tone="plain" action={async () => { await call(at + "/entities/" + r.id + "/reset", { workspace_id: room() }, { method: "PUT" }); got.again(); again(); }}><p>{r.value_key} may spend the whole limit again.</p></Confirm>],
    ]} />}</State></>;
}

export function RateDetail({ row }: P) {
  const got = useCalls("rate entities " + row.id, (s) => call("/policies/rate-limits/" + row.id + "/entities", { workspace_id: room() }, { signal: s }));
  return <><h2>Counters</h2><State of={got}>{(e) => e.data.length === 0 ? <p class="quiet">Nothing was counted in the present window.</p> : <Table label="Counters" rows={e.data} columns={[["For", (r: any) => <code>{r.value_key}</code>], ["Status", (r: any) => <Badge text={r.status} />], ["Used", (r: any) => count(r.current_usage), "n"], ["Next reset", (r: any) => since(r.window_resets_at)]]} />}</State></>;
}

const perMillion = (p: any) => p?.price_usd == null ? "–" : dollars(p.price_usd * 1e6);

export function IntegrationDetail({ row }: P) {
  const [find, search] = useState(""), [most, more] = useState(50);
  const [prices, price] = useState<Record<string, any>>({});
  const got = useCalls("models " + row.slug, (s) => call("/integrations/" + encodeURIComponent(row.slug) + "/models", row.type === "workspace" ? { workspace_id: room() } : {}, { signal: s }));
  const ask = (m: string) => call("/model-configs/pricing/" + encodeURIComponent(row.ai_provider_id) + "/" + encodeURIComponent(m)).then((p) => price((was) => ({ ...was, [m]: p })), (e) => price((was) => ({ ...was, [m]: { error: e.message } })));
  return <><h2>Models</h2><State of={got}>{(v) => {
    const all = v.models.filter((m: any) => (m.slug + " " + (m.name ?? "")).toLowerCase().includes(find.toLowerCase()));
    return <><div class="filters"><label>Find <input value={find} onInput={(e: any) => search(e.target.value)} /></label><span class="quiet">{count(all.length)} models. Prices are for one million tokens.</span></div>
      <Table label="Models" rows={all.slice(0, most)} columns={[
        ["Model", (m: any) => m.slug], ["Enabled", (m: any) => <Badge text={m.enabled ? "active" : "inactive"} />], ["Origin", (m: any) => m.is_custom ? "custom" : m.is_finetune ? "fine-tuned" : "catalog"],
        ["Input", (m: any) => prices[m.slug] ? perMillion(prices[m.slug].pay_as_you_go?.request_token) : <button type="button" onClick={() => ask(m.slug)} aria-label={"Price of " + m.slug}>Price</button>, "n"],
        ["Output", (m: any) => perMillion(prices[m.slug]?.pay_as_you_go?.response_token), "n"], ["Tariff", (m: any) => prices[m.slug]?.tariff ?? prices[m.slug]?.error ?? ""],
      ]} />{all.length > most && <p><button type="button" onClick={() => more(most + 200)}>Show more</button></p>}</>;
  }}</State></>;
}

// Tree shows the targets of a config.
function Tree({ of, at = "config", depth = 0 }: { of: any; at?: string; depth?: number }) {
  if (!of || typeof of !== "object" || depth > 20) return null;
  const extra = Object.entries(of).filter(([k]) => !["targets", "strategy", "provider", "virtual_key", "weight"].includes(k));
  return <li><span class="node"><strong>{of.strategy?.mode ?? of.provider ?? of.virtual_key ?? of.target ?? "target"}</strong>{of.weight != null && <Badge text={"weight " + of.weight} tone="off" />}<code>{at}</code>{extra.map(([k, v]) => <small>{k}: {typeof v === "object" ? JSON.stringify(v).slice(0, 120) : String(v)}</small>)}</span>
    {Array.isArray(of.targets) && <ul>{of.targets.map((t: any, i: number) => <Tree of={t} at={at + ".targets[" + i + "]"} depth={depth + 1} />)}</ul>}</li>;
}

const ask = { path: "/chat/completions", body: { model: "gpt-4o-mini", messages: [{ role: "user", content: "Hello" }] } };

export function ConfigDetail({ row, again }: P) {
  const [draft, edit] = useState(json(row.config)), [request, change] = useState(json(ask.body));
  const [tab, show] = useState("tree"), [result, set] = useState<any>(), [failure, fail] = useState<any>(), [seen, compare] = useState<any>();
  const versions = useCalls("config versions " + row.slug + row.version_id, (s) => call("/configs/" + row.slug + "/versions", { workspace_id: room() }, { signal: s }));
  const writes = can(["configs.update"], "manager");
  const attempt = async (work: () => Promise<any>) => { fail(undefined); try { await work(); } catch (e) { fail(failureOf(e)); } };
  const save = (config: any) => attempt(async () => { await call("/configs/" + row.slug, { workspace_id: room() }, { method: "PUT", body: { config } }); again(); });
  const parsed = (v: any) => typeof v === "string" ? JSON.parse(v) : v;
  const tabs: [string, string][] = [["tree", "Tree"], ["json", "JSON"], ["versions", "Versions"], ["dry", "Dry run"]];
  return <><p class="tabs">{tabs.map(([k, t]) => <button type="button" aria-pressed={tab === k} onClick={() => show(k)}>{t}</button>)}</p>
    {failure && <ErrorView failure={failure} />}
    {tab === "tree" && <ul class="tree"><Tree of={parsed(row.config)} /></ul>}
    {tab === "json" && <><label for="config" class="quiet">Config as JSON</label><JSONText id="config" rows={18} value={draft} change={edit} />
      {draft !== json(row.config) && <Diff label="Changes" before={json(row.config)} after={draft} />}
      {writes && <p class="row"><button type="button" class="main" disabled={draft === json(row.config)} onClick={() => attempt(() => save(JSON.parse(draft)))}>Save as a new version</button><button type="button" onClick={() => edit(json(row.config))}>Undo</button></p>}</>}
    {tab === "versions" && <State of={versions}>{(v) => <><Table label="Versions" rows={v.data} columns={[["Version", (r: any) => r.version], ["Created", (r: any) => date(r.last_updated_at ?? r.created_at)], ["By", (r: any) => <code>{r.updated_by}</code>],
      ["", (r: any) => <span class="row"><button type="button" onClick={() => compare(r)} aria-label={"Compare version " + r.version}>Compare</button>{writes && r.version_id !== row.version_id && <Confirm label="Restore" title={"Restore version " + r.version + "?"} tone="plain" action={() => call("/configs/" + row.slug, { workspace_id: room() }, { method: "PUT", body: { config: parsed(r.config) } }).then(again)}><p>Its content becomes the newest version.</p></Confirm>}</span>]]} />
      {seen && <><h2>Version {seen.version} and the present one</h2><Diff label="Difference" before={json(parsed(seen.config))} after={json(parsed(row.config))} /></>}</>}</State>}
    {tab === "dry" && <><p>Shows what this config does with a request. Nothing is sent to a provider.</p><ModelKey /><label for="request" class="quiet">Body of POST /v1/chat/completions</label><JSONText id="request" rows={8} value={request} change={change} />
      <p class="row"><button type="button" class="main" onClick={() => attempt(async () => set(await call("/configs/dry-run", {}, { method: "POST", key: keyForModels() || "none", body: { path: ask.path, body: JSON.parse(request), config: JSON.parse(draft) } })))}>Dry run</button></p>
      {result && <><Facts of={[["Mode", result.config.mode], ["Error", result.error?.message], ["Sent", result.sent ? "yes" : "no"]]} /><Table label="Targets" rows={result.targets} columns={[["Target", (t: any) => <code>{t.path}</code>], ["Provider", (t: any) => t.slug ?? t.provider], ["Model", (t: any) => t.model], ["Costs at most", (t: any) => dollars(t.price_bound?.cents == null ? null : t.price_bound.cents / 100), "n"], ["Retries", (t: any) => count(t.retries), "n"], ["Error", (t: any) => t.error?.message ?? "–"]]} /><h2>Decision</h2><Text label="Decision" value={result.decision} /></>}</>}</>;
}

export function PromptDetail({ row, again }: P) {
  const versions = useCalls("prompt versions " + row.slug + row.prompt_version_id, (s) => call("/prompts/" + row.slug + "/versions", { workspace_id: room() }, { signal: s }));
  const [seen, compare] = useState<any>();
  return <><p class="row"><Link class="button" to={"/console/playground?prompt=" + encodeURIComponent(row.slug)}>Open in the playground</Link></p><h2>Template</h2><Text label="Template" value={row.string} /><h2>Versions</h2><State of={versions}>{(v) => <><Table label="Versions" rows={v.data} columns={[["Version", (r: any) => r.prompt_version], ["Status", (r: any) => <Badge text={r.prompt_version_status} />], ["Created", (r: any) => date(r.created_at)], ["Note", (r: any) => r.prompt_version_description ?? "–"],
    ["", (r: any) => <span class="row"><button type="button" aria-label={"Compare version " + r.prompt_version} onClick={() => compare(r)}>Compare</button>{can(["prompts.publish"], "manager") && r.prompt_version_id !== row.prompt_version_id && <Confirm label="Publish" title={"Publish version " + r.prompt_version + "?"} tone="plain" action={() => call("/prompts/" + row.slug + "/makeDefault", { workspace_id: room() }, { method: "PUT", body: { version: r.prompt_version } }).then(again)}><p>Requests without a version then use it.</p></Confirm>}</span>]]} />
    {seen && <><h2>Version {seen.prompt_version} and the present one</h2><Diff label="Difference" before={String(seen.string)} after={String(row.string)} /></>}</>}</State></>;
}

export function GuardrailDetail({ row }: P) {
  return <><h2>Checks</h2><Table label="Checks" rows={row.checks ?? []} columns={[["Check", (c: any) => <code>{c.id}</code>], ["Enabled", (c: any) => <Badge text={c.is_enabled === false ? "inactive" : "active"} />], ["Parameters", (c: any) => <code>{JSON.stringify(c.parameters)}</code>]]} /><h2>Actions</h2><Text label="Actions" value={row.actions} /></>;
}

export function MCPDetail({ row }: P) {
  const got = useCalls("capabilities " + row.id, (s) => call("/mcp-servers/" + row.id + "/capabilities", { workspace_id: room() }, { signal: s }));
  const [result, set] = useState<any>(), [failure, fail] = useState<any>();
  const test = async () => { fail(undefined); const begin = performance.now(); try { set({ ...await call("/mcp-servers/" + row.id + "/test", { workspace_id: room() }, { method: "POST" }), took: performance.now() - begin }); } catch (e) { fail(failureOf(e)); } };
  return <>{can(["mcp_servers.update"], "manager") && <p class="row"><button type="button" onClick={test}>Test the connection</button></p>}{failure && <ErrorView failure={failure} again={test} />}{result && <><Text label="Result of the test" value={result} /><p class="quiet">It took {millis(result.took)}.</p></>}
    <h2>Tools, prompts and resources</h2><State of={got}>{(c) => !c.data?.length ? <p class="quiet">The server has not listed anything yet. Test the connection to see why.</p> : <Table label="Capabilities" rows={c.data} columns={[["Name", (r: any) => r.name], ["Type", (r: any) => r.type], ["Enabled", (r: any) => <Badge text={r.enabled ? "active" : "inactive"} />], ["Description", (r: any) => r.description ?? "–"]]} />}</State></>;
}
