// Simulations of a change on recorded requests.
import { useState } from "preact/hooks";
import { call, can, room } from "./api";
import { count, dollars, millis, title } from "./format";
import { Badge, between, ErrorView, failureOf, Link, ranges, Table } from "./ui";

const kinds: Record<string, string> = { moved: "Another target responds", repriced: "Costs differ", refused: "Rejected by a limit", released: "Not rejected any more", exceeded: "Over a limit that only records", tripped: "Fails a check", denied: "Denied by a guardrail" };
const log = (id: string) => <Link to={"/console/logs/" + encodeURIComponent(id)}>{id.slice(-8)}</Link>;

export const maySimulate = () => can(["logs.read", "logs.view"]);

// Simulation applies what change returns to recorded requests. Nothing is sent.
export function Simulation({ change }: { change: () => any }) {
  const [range, pick] = useState("24h"), [got, set] = useState<any>(), [failure, fail] = useState<any>(), [busy, work] = useState(false);
  const run = async () => {
    work(true); fail(undefined);
    try { set(await call("/simulations", { ...between(range), workspace_id: room() }, { method: "POST", body: change() })); } catch (e) { set(undefined); fail(failureOf(e)); }
    work(false);
  };
  const tiles: [string, (x: any) => string][] = [["Requests", (x) => count(x.requests)], ["Rejected", (x) => count(x.refused)], ["Denied", (x) => count(x.denied)], ["Cost", (x) => dollars(x.cost_usd)], ["Latency", (x) => millis(x.latency_ms)]];
  return <><p>Applies the change to recorded requests and shows what would have been different. Nothing is sent or stored.</p>
    <p class="row"><label>Requests of <select value={range} onChange={(e: any) => pick(e.target.value)}>{Object.entries(ranges).map(([k, [text]]) => <option value={k}>{text.toLowerCase()}</option>)}</select></label>
      <button type="button" class="main" disabled={busy} onClick={run}>{busy ? "Simulating…" : "Simulate"}</button></p>{failure && <ErrorView failure={failure} again={run} />}
    {got && <div class="simulation" role="region" aria-label="Result of the simulation">{!got.complete && <p class="quiet">Only the first {count(got.before.requests)} requests were read.</p>}
      {got.before.requests === 0 ? <p class="empty">There are no requests in this time.</p> : <>
        <dl class="tiles">{tiles.map(([name, show]) => <div><dt>{name}</dt><dd>{show(got.after)}<small>{show(got.before) === show(got.after) ? "as recorded" : "recorded: " + show(got.before)}</small></dd></div>)}</dl>
        <h3>Differences</h3>{got.differences.length === 0 ? <p class="quiet">Nothing would have been different.</p> : <Table label="Differences" rows={got.differences} columns={[["Difference", (d: any) => kinds[d.kind] ?? d.kind], ["Requests", (d: any) => count(d.requests), "n"], ["Examples", (d: any) => <span class="row">{d.examples.slice(0, 3).map((x: any) => log(x.log_id))}</span>]]} />}
        {got.alternatives.length > 0 && <><h3>Targets</h3><Table label="Simulated targets" rows={got.alternatives} columns={[["Target", (a: any) => <code>{a.path}</code>], ["Provider", (a: any) => a.virtual_key ?? a.provider ?? "–"], ["Model", (a: any) => a.model ?? "as requested"], ["Requests", (a: any) => count(a.chosen), "n"], ["All there", (a: any) => dollars(a.cost_usd), "n"], ["Latency p95", (a: any) => millis(a.latency_p95_ms), "n"]]} /></>}
        {got.limits.length > 0 && <><h3>Limits</h3><Table label="Simulated limits" rows={got.limits} columns={[["Name", (l: any) => l.name], ["Counted", (l: any) => count(l.counted), "n"], ["Rejected", (l: any) => count(l.refused), "n"], ["First rejected", (l: any) => l.first_refused_log_id ? log(l.first_refused_log_id) : "–"]]} /></>}
        {got.guardrails.length > 0 && <><h3>Guardrails</h3><Table label="Simulated guardrails" rows={got.guardrails} columns={[["Guardrail", (g: any) => g.name], ["Run on", (g: any) => count(g.run), "n"], ["Failed", (g: any) => count(g.failed), "n"], ["Not run", (g: any) => g.not_run || "–"]]} /></>}
        {got.unjudged.length > 0 && <><h3>Not evaluated</h3><Table label="Not evaluated" rows={got.unjudged} columns={[["Reason", (u: any) => <Badge text={title(u.reason)} tone="off" />], ["Requests", (u: any) => count(u.requests), "n"], ["Examples", (u: any) => <span class="row">{u.log_ids.slice(0, 3).map(log)}</span>]]} /></>}</>}</div>}</>;
}
