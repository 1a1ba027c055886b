// What pages of keys, limits and guardrails show beside their facts.
import { useState } from "preact/hooks";
import { call, can, inRoom, now, room, workspace } from "./api";
import { count, date, dollars, json, moment, since } from "./format";
import { RecentUse } from "./remove";
import { maySimulate, Simulation } from "./simulate";
import { Badge, between, Confirm, ErrorView, Facts, failureOf, Head, Link, Range, rangeOf, Shown, State, Table, Text, useCalls } from "./ui";

type P = { row: any; again: () => void };

export function KeyDetail({ row, again }: P) {
  const [secret, show] = useState(""), [overlap, set] = useState("1800000"), [failure, fail] = useState<any>();
  const family = row.type.replaceAll("-", "_") + "_api_keys", limit = row.usage_limits;
  const amount = (n: number) => (limit.type ?? "cost") === "cost" ? dollars(n) : count(n) + " " + limit.type;
  const rotate = async () => {
    const r = await call("/api-keys/" + row.id + "/rotate", {}, { method: "POST", body: { key_transition_period_ms: Number(overlap) } });
    show(r.key); again();
  };
  const state = async (status: string) => { fail(undefined); try { await call("/api-keys/" + row.id, {}, { method: "PUT", body: { status } }); again(); } catch (e) { fail(failureOf(e)); } };
  return <>{secret && <Shown name="The new secret" secret={secret} done={() => show("")} />}{failure && <ErrorView failure={failure} />}
    <Facts of={[["Last used", row.last_used_at ? <span title={row.last_used_at}>{since(row.last_used_at)}</span> : "never"], ["Expires", row.expires_at ? date(row.expires_at) : "never"], ["Budget", limit ? amount(limit.credit_limit) : "none"], ["Settled", limit && amount(limit.current_usage)], ["Reserved", limit && amount(limit.reserved_usage)], ["Left", limit && amount(limit.available)], ["Former secret ends", row.key_transition_expires_at && date(row.key_transition_expires_at)], ["Scopes", (row.scopes ?? []).join(", ")]]} />
    <div class="cards">{can([family + ".update"]) && (row.status === "active" || row.status === "paused") && <div class="panel"><h2>{row.status === "active" ? "Pause" : "Resume"}</h2><p>{row.status === "active" ? "Rejects requests with this key until it is resumed. Nothing else changes." : "The key is paused: requests with it are rejected."}</p>
      <p class="row">{row.status === "active" ? <Confirm label="Pause" title="Pause this key?" tone="plain" action={() => state("paused")}><p>Requests with this key are rejected within 2 seconds.</p><h3>Used in the last 24 hours</h3><RecentUse id={row.id} /></Confirm> : <button type="button" onClick={() => state("active")}>Resume</button>}</p></div>}
    {can([family + ".rotate"]) && row.status === "active" && <div class="panel"><h2>Rotate</h2><p>Creates a new secret. The former one stays valid for a time, so that no request fails.</p>
      <p class="row"><label>Overlap <select value={overlap} onChange={(e: any) => set(e.target.value)}><option value="1800000">30 minutes</option><option value="3600000">1 hour</option><option value="86400000">1 day</option><option value="604800000">7 days</option></select></label>
        <Confirm label="Rotate" title="Rotate this key?" tone="plain" action={rotate}><p>Clients need the new secret before the overlap ends.</p></Confirm></p></div>}</div>
    <h2>Used in the last 24 hours</h2><RecentUse id={row.id} /></>;
}

// periodStart is when the present period of a limit began.
function periodStart(row: any, reset?: string): number {
  const begun = Math.max(Date.parse(row.created_at), Date.parse(row.last_reset_at ?? row.created_at));
  if (!reset) return begun;
  const at = new Date(reset);
  if (row.periodic_reset === "monthly") at.setUTCMonth(at.getUTCMonth() - 1);
  else at.setUTCDate(at.getUTCDate() - (row.periodic_reset_days ?? 7));
  return Math.max(begun, at.getTime());
}

export function BudgetDetail({ row, again }: P) {
  const at = "/policies/usage-limits/" + row.id;
  const got = useCalls("entities " + row.id, (s) => call(at + "/entities", { workspace_id: room() }, { signal: s }));
  const show = (n: number) => row.type === "cost" ? dollars(n) : count(n);
  const reset = row.next_reset_at ?? row.next_usage_reset_at, days = Math.max((now() - periodStart(row, reset)) / 86400_000, 1 / 24);
  const runway = (e: any) => {
    if (e.available <= 0) return "used up";
    const left = e.available / (e.current_usage / days);
    return !(e.current_usage > 0) ? "–" : reset && now() + left * 86400_000 > Date.parse(reset) ? "until the reset" : left.toFixed(1) + " days";
  };
  return <><Facts of={[["Limit", show(row.credit_limit)], ["Next reset", reset ? date(reset) : "never"], ["Temporary raise", row.temporary_raise ? json(row.temporary_raise) : "none"]]} />
    {maySimulate() && <details class="panel"><summary>Try the limit on recorded traffic</summary><Simulation change={() => ({ usage_limits: [{ name: row.name || "This limit", conditions: row.conditions, group_by: row.group_by, type: row.type, credit_limit: row.credit_limit, ...(row.periodic_reset ? { periodic_reset: row.periodic_reset } : {}) }] })} /></details>}
    <h2>Counters</h2><State of={got}>{(e) => e.data.length === 0 ? <p class="quiet">Nothing has been counted yet.</p> : <Table label="Counters" rows={e.data} columns={[
      ["For", (r: any) => <code>{r.value_key}</code>], ["Status", (r: any) => <Badge text={r.status} />], ["Settled", (r: any) => show(r.current_usage), "n"], ["Reserved", (r: any) => show(r.reserved_usage), "n"], ["Left", (r: any) => show(r.available), "n"], ["Runway", runway, "n"],
      ["", (r: any) => can(["policies.update"], "manager") && <Confirm label="Reset" title="Reset this counter?" tone="plain" action={async () => { await call(at + "/entities/" + r.id + "/reset", { workspace_id: room() }, { method: "PUT" }); got.again(); again(); }}><p>{r.value_key} may spend the whole limit again.</p></Confirm>],
    ]} />}</State></>;
}

export function RateDetail({ row }: P) {
  const got = useCalls("rate entities " + row.id, (s) => call("/policies/rate-limits/" + row.id + "/entities", { workspace_id: room() }, { signal: s }));
  return <><h2>Counters</h2><State of={got}>{(e) => e.data.length === 0 ? <p class="quiet">Nothing was counted in the present window.</p> : <Table label="Counters" rows={e.data} columns={[["For", (r: any) => <code>{r.value_key}</code>], ["Status", (r: any) => <Badge text={r.status} />], ["Used", (r: any) => count(r.current_usage), "n"], ["Next reset", (r: any) => since(r.window_resets_at)]]} />}</State></>;
}

// Verdicts shows what the guardrails decided lately.
export function Verdicts() {
  const lists = can(["logs.list"]), range = rangeOf(new URLSearchParams(location.search));
  const where = { ...between(range), ...inRoom() };
  const got = useCalls("verdicts " + range + workspace(), (s) => Promise.all([
    call("/analytics/groups/status_code", where, { signal: s }),
    lists ? call("/logs", { ...where, status_code: "446", page_size: "10" }, { signal: s }) : { data: [] }]));
  return <><Head title="What was denied?"><Range value={range} /></Head><State of={got}>{([groups, denied]) => {
    const of = (code: number) => groups.data.find((g: any) => g.status_code === code)?.requests ?? 0;
    return <><dl class="tiles">{[["Denied", of(446), "status 446"], ["Failed a check and passed", of(246), "status 246"], ["Other requests", groups.data.reduce((n: number, g: any) => n + g.requests, 0) - of(446) - of(246), "not checked, or all checks passed"]].map(([n, v, note]: any) => <div><dt>{n}</dt><dd>{count(v)}<small>{note}</small></dd></div>)}</dl>
      {lists && <><h2>Last denials</h2>{denied.data.length === 0 ? <p class="quiet">No request was denied in this time.</p> : <><Table label="Last denials" rows={denied.data} columns={[["Time", (r: any) => <Link to={"/console/logs/" + encodeURIComponent(r.id)} title={r.created_at}>{moment(r.created_at)}</Link>], ["Model", (r: any) => r.ai_model ?? "–"], ["API key", (r: any) => r.api_key_id ? <Link to={"/console/keys/" + r.api_key_id}>{r.api_key_id.slice(0, 8)}</Link> : "–"], ["Why", (r: any) => r.error_message ?? r.error_code ?? "–", "w"]]} /><p><Link to={"/console/logs?status_code=446&range=" + range}>All denied requests</Link></p></>}</>}</>;
  }}</State></>;
}

export function GuardrailDetail({ row }: P) {
  return <>{maySimulate() && <div class="panel"><h2>Try on recorded traffic</h2><Simulation change={() => ({ input_guardrails: [row.slug] })} /></div>}<h2>Checks</h2><Table label="Checks" rows={row.checks ?? []} columns={[["Check", (c: any) => <code>{c.id}</code>], ["Enabled", (c: any) => <Badge text={c.is_enabled === false ? "inactive" : "active"} />], ["Parameters", (c: any) => <code>{JSON.stringify(c.parameters)}</code>]]} /><h2>Actions</h2><Text label="Actions" value={row.actions} /></>;
}

