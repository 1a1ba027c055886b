// The page of a prompt: versions, experiments and tests.
import { useState } from "preact/hooks";
import { call, can, room } from "./api";
import { count, date, dollars, json, millis, percent, since } from "./format";
import { JSONText } from "./form";
import { keyForModels, ModelKey } from "./modelkey";
import { Remove } from "./remove";
import { Badge, Confirm, Diff, ErrorView, failureOf, Link, State, Table, Text, useCalls } from "./ui";

type P = { row: any; again: () => void };

export function PromptDetail({ row, again }: P) {
  const [tab, show] = useState("template");
  const tabs: [string, string][] = [["template", "Template"], ["versions", "Versions"], ["experiments", "Experiments"], ["tests", "Tests"]];
  return <><p class="row"><Link class="button" to={"/console/playground?prompt=" + encodeURIComponent(row.slug)}>Open in the playground</Link></p>
    <p class="tabs">{tabs.map(([k, t]) => <button type="button" aria-pressed={tab === k} onClick={() => show(k)}>{t}</button>)}</p>
    {tab === "template" && <Text label="Template" value={row.string} />}{tab === "versions" && <Versions row={row} again={again} />}
    {tab === "experiments" && <Experiments row={row} again={again} />}{tab === "tests" && <Tests row={row} again={again} />}</>;
}

const versionsOf = (row: any) => useCalls("prompt versions " + row.slug + row.prompt_version_id, (s) => call("/prompts/" + row.slug + "/versions", { workspace_id: room() }, { signal: s }));

function Versions({ row, again }: P) {
  const versions = versionsOf(row), [seen, compare] = useState<any>(), [failure, fail] = useState<any>();
  const labels = useCalls("labels", (s) => call("/labels", { workspace_id: room() }, { signal: s })), all: any[] = labels.value?.data ?? [];
  const of = (r: any): string[] => r.prompt_version_label_ids ?? [];
  // A label is on one version: choosing it here takes it from the other one.
  const give = async (r: any, label: string) => { fail(undefined); try { await call("/prompts/" + row.slug + "/versions/" + r.prompt_version_id, { workspace_id: room() }, { method: "PUT", body: { label_id: label || null } }); versions.again(); } catch (e) { fail(failureOf(e)); } };
  return <State of={versions}>{(v) => <>{failure && <ErrorView failure={failure} />}<Table label="Versions" rows={v.data} columns={[["Version", (r: any) => r.prompt_version], ["Status", (r: any) => <Badge text={r.prompt_version_status} />], ["Created", (r: any) => date(r.created_at)], ["Note", (r: any) => r.prompt_version_description ?? "–"], ["Label", (r: any) => can(["prompts.update"], "manager") && all.length > 0 ? <select aria-label={"Label of version " + r.prompt_version} value={of(r)[0] ?? ""} onChange={(e: any) => give(r, e.target.value)}><option value="">None</option>{all.map((l) => <option value={l.id}>{l.name}</option>)}</select> : of(r).map((id) => all.find((l) => l.id === id)?.name ?? id).join(", ") || "–"],
    ["", (r: any) => <span class="row"><button type="button" aria-label={"Compare version " + r.prompt_version} onClick={() => compare(r)}>Compare</button>{can(["prompts.publish"], "manager") && r.prompt_version_id !== row.prompt_version_id && <Confirm label="Publish" title={"Publish version " + r.prompt_version + "?"} tone="plain" action={() => call("/prompts/" + row.slug + "/makeDefault", { workspace_id: room() }, { method: "PUT", body: { version: r.prompt_version } }).then(again)}><p>Requests without a version then use it.</p></Confirm>}</span>]]} />
    {seen && <><h2>Version {seen.prompt_version} and the present one</h2><Diff label="Difference" before={String(seen.string)} after={String(row.string)} /></>}</>}</State>;
}

function Experiments({ row, again }: P) {
  const at = "/prompts/" + row.slug + "/experiments", place = { workspace_id: room() };
  const got = useCalls("experiments " + row.slug, (s) => call(at, place, { signal: s }));
  const [seen, see] = useState<string>(), [failure, fail] = useState<any>(), [making, make] = useState(false);
  const act = async (id: string, verb: string) => { fail(undefined); try { await call(at + "/" + id + "/" + verb, place, { method: "POST" }); got.again(); } catch (e) { fail(failureOf(e)); } };
  const publishes = can(["prompts.publish"], "manager"), writes = can(["prompts.update"], "manager");
  return <><p>An experiment shares the requests that name no version among versions of the prompt, and compares them.</p>{failure && <ErrorView failure={failure} />}
    {writes && (making ? <NewExperiment row={row} at={at} done={() => { make(false); got.again(); }} cancel={() => make(false)} /> : <p class="row"><button type="button" class="main" onClick={() => make(true)}>Create an experiment</button></p>)}
    <State of={got}>{(v) => v.data.length === 0 ? <p class="quiet">There is no experiment yet.</p> : <Table label="Experiments" rows={v.data} columns={[["Name", (r: any) => r.name], ["Status", (r: any) => <Badge text={r.status} tone={r.status === "running" ? "good" : "off"} />], ["Versions", (r: any) => r.variants.map((x: any) => x.version + " (" + x.weight + ")").join(", ")], ["Started", (r: any) => since(r.started_at)],
      ["", (r: any) => <span class="row">{can(["analytics.view"]) && <button type="button" aria-label={"Results of " + r.name} onClick={() => see(r.id)}>Results</button>}
        {publishes && r.status === "draft" && <button type="button" onClick={() => act(r.id, "start")}>Start</button>}{publishes && r.status === "running" && <button type="button" onClick={() => act(r.id, "stop")}>Stop</button>}
        {writes && r.status !== "running" && <Remove name={r.name} path={at + "/" + r.id} params={place} done={got.again} />}</span>]]} />}</State>
    {seen && <Results key={seen} at={at + "/" + seen} promote={publishes ? async (version) => { await call(at + "/" + seen + "/promote", place, { method: "POST", body: { version } }); got.again(); again(); } : undefined} />}</>;
}

function NewExperiment({ row, at, done, cancel }: { row: any; at: string; done: () => void; cancel: () => void }) {
  const versions = versionsOf(row), [name, rename] = useState(""), [weights, weigh] = useState<Record<number, string>>({}), [failure, fail] = useState<any>();
  const send = async (e: any) => {
    e.preventDefault(); fail(undefined);
    const variants = Object.entries(weights).filter(([, w]) => Number(w) > 0).map(([version, w]) => ({ version: Number(version), weight: Number(w) }));
    try { await call(at, {}, { method: "POST", body: { name: name.trim(), variants, workspace_id: room() } }); done(); } catch (x) { fail(failureOf(x)); }
  };
  return <form class="form panel" onSubmit={send}><div class="field"><label for="experiment">Name</label><input id="experiment" required value={name} onInput={(e: any) => rename(e.target.value)} /></div>
    <State of={versions}>{(v) => <>{v.data.slice(0, 10).map((r: any) => <div class="field"><label for={"w-" + r.prompt_version}>Weight of version {r.prompt_version}</label><input id={"w-" + r.prompt_version} type="number" min="0" max="1000" value={weights[r.prompt_version] ?? ""} onInput={(e: any) => weigh({ ...weights, [r.prompt_version]: e.target.value })} /></div>)}{v.data.length < 2 && <p class="quiet">An experiment compares at least two versions: save another version of the prompt first.</p>}</>}</State>
    {failure && <ErrorView failure={failure} />}<p class="row"><button class="main">Create</button><button type="button" onClick={cancel}>Cancel</button></p></form>;
}

function Results({ at, promote }: { at: string; promote?: (version: number) => Promise<void> }) {
  const got = useCalls("results " + at, (s) => call(at + "/results", { workspace_id: room() }, { signal: s }));
  const within = (r: any, name: string, show: (n: number) => string) => { const m = r.measures?.[name]; return m == null || !r.requests ? "–" : <span title={m.low == null ? undefined : show(m.low) + " to " + show(m.high)}>{show(m.value)}</span>; };
  const rate = (n: number) => percent(n * 100);
  return <><h2>Results</h2><State of={got}>{(v) => <><Table label="Results" rows={v.variants} columns={[["Version", (r: any) => r.prompt_version], ["Requests", (r: any) => count(r.requests), "n"], ["Cost", (r: any) => within(r, "cost_usd", dollars), "n"], ["Latency", (r: any) => within(r, "latency", millis), "n"], ["Output tokens", (r: any) => within(r, "output_tokens", count), "n"], ["Errors", (r: any) => within(r, "error_rate", rate), "n"], ["Denied", (r: any) => within(r, "denied_rate", rate), "n"], ["Feedback", (r: any) => within(r, "feedback", count), "n"],
    ["", (r: any) => promote && <Confirm label="Promote" title={"Promote version " + r.prompt_version + "?"} tone="plain" action={() => promote(r.prompt_version)}><p>Ends the experiment and publishes this version.</p></Confirm>]]} /><p class="quiet">Costs, latencies and tokens are means for one request. Point at a number to see its {percent(v.confidence * 100)} confidence interval.</p></>}</State></>;
}

const example = [{ name: "names the customer", variables: {}, assertions: [{ type: "contains", value: "hello" }] }];

function Tests({ row, again }: P) {
  const [draft, edit] = useState(json(row.tests?.length ? row.tests : example)), [result, set] = useState<any>(), [failure, fail] = useState<any>(), [busy, work] = useState(false);
  const attempt = async (todo: () => Promise<any>) => { work(true); fail(undefined); try { await todo(); } catch (e) { fail(failureOf(e)); } work(false); };
  const save = () => attempt(async () => { await call("/prompts/" + row.slug, { workspace_id: room() }, { method: "PUT", body: { tests: JSON.parse(draft) } }); again(); });
  const run = () => attempt(async () => set(await call("/prompts/" + row.slug + "/test", {}, { method: "POST", key: keyForModels(), body: { tests: JSON.parse(draft) } })));
  return <><p>Each test fills in the variables, calls the model, and checks the response. Runs count against limits and are logged.</p><ModelKey /><label for="tests" class="quiet">Tests as JSON</label><JSONText id="tests" rows={12} value={draft} change={edit} />
    <p class="row"><button type="button" class="main" disabled={busy} onClick={run}>{busy ? "Running…" : "Run the tests"}</button>{can(["prompts.update"], "manager") && <button type="button" disabled={busy || draft === json(row.tests)} onClick={save}>Save the tests</button>}</p>{failure && <ErrorView failure={failure} />}
    {result && <><p role="status"><Badge text={result.passed ? "All tests passed" : "Tests failed"} tone={result.passed ? "good" : "bad"} /></p><Table label="Test results" rows={result.cases} columns={[["Test", (c: any) => c.name], ["Result", (c: any) => <Badge text={c.passed ? "passed" : "failed"} tone={c.passed ? "good" : "bad"} />], ["Why", (c: any) => c.problem ?? (c.assertions.filter((a: any) => !a.passed).map((a: any) => a.type + ": " + (a.reason ?? "failed")).join("; ") || "–")], ["Response", (c: any) => c.answer ?? c.rendered ?? "–"], ["Latency", (c: any) => millis(c.latency_ms), "n"]]} /></>}</>;
}
