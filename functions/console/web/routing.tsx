// The page of a config.
import { useState } from "preact/hooks";
import { call, can, room } from "./api";
import { count, date, dollars, json } from "./format";
import { JSONText } from "./form";
import { keyForModels, ModelKey } from "./modelkey";
import { maySimulate, Simulation } from "./simulate";
import { Badge, Confirm, Diff, ErrorView, Facts, failureOf, State, Table, Text, useCalls } from "./ui";

type P = { row: any; again: () => void };

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
  const [tab, show] = useState("tree"), [result, set] = useState<any>(), [failure, fail] = useState<any>(), [seen, compare] = useState<any>(), [busy, begin] = useState(false);
  const versions = useCalls("config versions " + row.slug + row.version_id, (s) => call("/configs/" + row.slug + "/versions", { workspace_id: room() }, { signal: s }));
  const writes = can(["configs.update"], "manager");
  const attempt = async (work: () => Promise<any>) => { begin(true); fail(undefined); try { await work(); } catch (e) { fail(failureOf(e)); } begin(false); };
  const save = () => attempt(async () => { await call("/configs/" + row.slug, { workspace_id: room() }, { method: "PUT", body: { config: JSON.parse(draft) } }); again(); });
  const parsed = (v: any) => typeof v === "string" ? JSON.parse(v) : v;
  const tabs: [string, string][] = [["tree", "Tree"], ["json", "JSON"], ["versions", "Versions"], ["dry", "Dry run"], ...(maySimulate() ? [["simulate", "Simulation"] as [string, string]] : [])];
  return <><p class="tabs">{tabs.map(([k, t]) => <button type="button" aria-pressed={tab === k} onClick={() => show(k)}>{t}</button>)}</p>
    {failure && <ErrorView failure={failure} />}
    {tab === "tree" && <ul class="tree"><Tree of={parsed(row.config)} /></ul>}
    {tab === "json" && <><label for="config" class="quiet">Config as JSON</label><JSONText id="config" rows={18} value={draft} change={edit} />
      {draft !== json(row.config) && <Diff label="Changes" before={json(row.config)} after={draft} />}
      {writes && <p class="row"><button type="button" class="main" disabled={busy || draft === json(row.config)} onClick={save}>Save as a new version</button><button type="button" onClick={() => edit(json(row.config))}>Undo</button></p>}</>}
    {tab === "versions" && <State of={versions}>{(v) => <><Table label="Versions" rows={v.data} columns={[["Version", (r: any) => r.version], ["Created", (r: any) => date(r.last_updated_at ?? r.created_at)], ["By", (r: any) => <code>{r.updated_by}</code>],
      ["", (r: any) => <span class="row"><button type="button" onClick={() => compare(r)} aria-label={"Compare version " + r.version}>Compare</button>{writes && r.version_id !== row.version_id && <Confirm label="Restore" title={"Restore version " + r.version + "?"} tone="plain" action={() => call("/configs/" + row.slug, { workspace_id: room() }, { method: "PUT", body: { config: parsed(r.config) } }).then(again)}><p>Its content becomes the newest version.</p></Confirm>}</span>]]} />
      {seen && <><h2>Version {seen.version} and the present one</h2><Diff label="Difference" before={json(parsed(seen.config))} after={json(parsed(row.config))} /></>}</>}</State>}
    {tab === "simulate" && <><p class="quiet">{draft === json(row.config) ? "The saved config is simulated." : "The changed config of the JSON tab is simulated."}</p><Simulation change={() => ({ config: JSON.parse(draft) })} /></>}
    {tab === "dry" && <><p>Shows what this config does with a request. Nothing is sent to a provider.</p><ModelKey /><label for="request" class="quiet">Body of POST /v1/chat/completions</label><JSONText id="request" rows={8} value={request} change={change} />
      <p class="row"><button type="button" class="main" disabled={busy} onClick={() => attempt(async () => set(await call("/configs/dry-run", {}, { method: "POST", key: keyForModels(), body: { path: ask.path, body: JSON.parse(request), config: JSON.parse(draft) } })))}>Dry run</button></p>
      {result && <><Facts of={[["Mode", result.config.mode], ["Error", result.error?.message], ["Sent", result.sent ? "yes" : "no"]]} /><Table label="Targets" rows={result.targets} columns={[["Target", (t: any) => <code>{t.path}</code>], ["Provider", (t: any) => t.slug ?? t.provider], ["Model", (t: any) => t.model], ["Costs at most", (t: any) => dollars(t.price_bound?.cents == null ? null : t.price_bound.cents / 100), "n"], ["Retries", (t: any) => count(t.retries), "n"], ["Error", (t: any) => t.error?.message ?? "–"]]} /><h2>Decision</h2><Text label="Decision" value={result.decision} /></>}</>}</>;
}
