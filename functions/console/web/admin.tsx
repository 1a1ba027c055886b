// The playground, and the pages of the organization that are no lists of resources.
import { useState } from "preact/hooks";
import { call, can, Failure, room } from "./api";
import { count, json, millis, moment, title } from "./format";
import { JSONText } from "./form";
import { keyForModels, ModelKey, takeStart } from "./modelkey";
import { Badge, between, ErrorView, failureOf, Head, Range, rangeOf, setQuery, State, Status, Table, Text, useCalls } from "./ui";

export function Playground() {
  const q = new URLSearchParams(location.search), slug = q.get("prompt") ?? "";
  const got = useCalls("playground " + slug, (s) => slug ? call("/prompts/" + encodeURIComponent(slug), { workspace_id: room() }, { signal: s }) : Promise.resolve(null));
  return <><Head title="Try models side by side" /><State of={got}>{(prompt) => <Runs prompt={prompt} />}</State></>;
}

function Runs({ prompt }: { prompt: any }) {
  const [of] = useState(takeStart), [models, set] = useState(of.model || "gpt-4o-mini"), [provider, name] = useState("@" + (of.provider || "mock")), [message, say] = useState(of.message || "Say hello in one sentence."), [values, fill] = useState(json(prompt?.parameters ?? {}));
  const [results, show] = useState<any[]>([]), [busy, work] = useState(false), [failure, fail] = useState<Failure>();
  const run = async (e: any) => {
    e.preventDefault();
    work(true); fail(undefined); show([]);
    try {
      keyForModels();
      const one = async (model: string) => {
        const begin = performance.now();
        try {
          const r = prompt ? await call("/prompts/" + prompt.slug + "/completions", {}, { method: "POST", key: keyForModels(), body: { variables: JSON.parse(values), ...(model ? { model } : {}) } })
            : await call("/chat/completions", {}, { method: "POST", key: keyForModels(), body: { model: provider ? provider.replace(/^@?/, "@") + "/" + model : model, messages: [{ role: "user", content: message }] } });
          return { model: model || prompt?.model, text: r.choices?.[0]?.message?.content ?? json(r), usage: r.usage, took: performance.now() - begin };
        } catch (x) { return { model, failure: failureOf(x), took: performance.now() - begin }; }
      };
      show(await Promise.all(models.split(",").map((m) => m.trim()).filter(Boolean).slice(0, 4).map(one)));
    } catch (x) { fail(failureOf(x)); }
    work(false);
  };
  return <><form class="form" onSubmit={run}><ModelKey />
    {!prompt && <div class="field"><label for="provider">Provider</label><input id="provider" value={provider} onInput={(e: any) => name(e.target.value)} /></div>}
    <div class="field"><label for="models">Models</label><input id="models" value={models} onInput={(e: any) => set(e.target.value)} /><small>Up to four, with commas between them.</small></div>
    {prompt ? <div class="field"><label for="variables">Variables of {prompt.name}</label><JSONText id="variables" rows={5} value={values} change={fill} /></div> : <div class="field"><label for="message">Message</label><textarea id="message" rows={4} value={message} onInput={(e: any) => say(e.target.value)} /></div>}
    {failure && <ErrorView failure={failure} />}<p class="row"><button class="main" disabled={busy}>{busy ? "Running…" : "Run"}</button></p></form>
    <div class="runs" aria-live="polite">{results.map((r) => <section aria-label={r.model} class="panel"><h2>{r.model}</h2>{r.failure ? <ErrorView failure={r.failure} /> : <Text label={"Response of " + r.model} value={r.text} />}<p class="quiet">{millis(r.took)}{r.usage && <>, {count(r.usage.prompt_tokens)} tokens in, {count(r.usage.completion_tokens)} out</>}</p></section>)}</div></>;
}

export function Settings() {
  const got = useCalls("settings", (s) => call("/admin/organisation/settings", {}, { signal: s }));
  return <><Head title="What applies to everybody?" /><State of={got}>{(v) => Object.entries(v).filter(([, x]) => x && typeof x === "object").map(([k, x]) => <Section name={k} value={x} at="/admin/organisation/settings" saved={got.again} key={k + json(x)} />)}</State></>;
}

const sources: Record<string, string> = { workspace: "set here", organisation: "from the organization", standard: "standard" };

// Section shows a part of settings, and where each value comes from if origins tell. With
// them a change leaves inherited values inherited.
export function Section({ name, value, at, saved, origins }: { name: string; value: any; at: string; saved: () => void; origins?: Record<string, string> }) {
  const [draft, edit] = useState(json(value)), [failure, fail] = useState<Failure>(), [open, show] = useState(false), [busy, work] = useState(false);
  const writes = origins ? can(["workspaces.update"], "admin") : can(["organisation_settings.update"], "admin");
  const save = async () => { work(true); fail(undefined); try { await call(at, {}, { method: "PUT", body: { [name]: JSON.parse(draft), origins } }); saved(); } catch (e) { fail(failureOf(e)); } work(false); };
  const entries = Array.isArray(value) ? [] : Object.entries(value);
  return <section class="panel" aria-label={title(name)}><header><h2>{title(name)}</h2>{writes && <button type="button" onClick={() => { edit(json(value)); show(!open); }} aria-expanded={open} aria-label={(open ? "Close" : "Edit") + " " + title(name)}>{open ? "Close" : "Edit"}</button>}</header>
    {!open && <dl class="pairs">{entries.map(([k, v]) => <><dt>{title(k)}</dt><dd>{v === null ? <span class="quiet">{origins ? "not set" : "standard"}</span> : Array.isArray(v) && v.length === 0 ? "none" : typeof v === "object" ? <code>{JSON.stringify(v)}</code> : typeof v === "boolean" ? (v ? "yes" : "no") : String(v)}{origins?.[name + "." + k] && <> <small>{sources[origins[name + "." + k]]}</small></>}</dd></>)}</dl>}
    {open && <><label for={"s-" + name} class="quiet">Section as JSON</label><JSONText id={"s-" + name} rows={Math.min(16, draft.split("\n").length + 1)} value={draft} change={edit} />{failure && <ErrorView failure={failure} />}</>}
    {writes && open && <p class="row"><button type="button" class="main" disabled={busy || draft === json(value)} onClick={save}>Save</button></p>}</section>;
}

const filters: [string, string][] = [["action", "Action"], ["resource_type", "Resource"], ["user_id", "Actor"], ["response_status_code", "Status"]];

export function Audit() {
  const q = new URLSearchParams(location.search), range = rangeOf(q), page = q.get("cursor") ?? "";
  const [seen, show] = useState<any>();
  const asked = Object.fromEntries(filters.map(([n]) => [n, q.get(n) ?? ""]));
  const t = between(range);
  const got = useCalls("audit " + q, (s) => call("/audit-logs", { start_time: t.time_of_generation_min, end_time: t.time_of_generation_max, ...asked, page_size: "50", cursor: page }, { signal: s }));
  const object = (v: any) => { try { return typeof v === "string" ? JSON.parse(v) : v; } catch { return v; } };
  return <><Head title="Who changed what?"><Range value={range} /></Head>
    <form class="filters" key={String(q)} onSubmit={(e) => e.preventDefault()}>{filters.map(([n, l]) => <label>{l} <input value={asked[n]} onChange={(e: any) => setQuery(n, e.target.value.trim())} /></label>)}</form>
    <State of={got}>{(v) => v.records.length === 0 ? <p class="empty">Nothing was changed in this time.</p> : <><Table label="Audit log" rows={v.records} columns={[["Time", (r: any) => <span title={r.timestamp}>{moment(r.timestamp)}</span>], ["Action", (r: any) => r.action], ["Resource", (r: any) => r.resource_type], ["Request", (r: any) => <code>{r.method} {r.uri}</code>], ["Status", (r: any) => <Status code={r.response_status_code} />], ["Actor", (r: any) => <code>{r.user_id ?? "–"}</code>], ["", (r: any) => <button type="button" onClick={() => show(r)}>Details</button>]]} />
      <p class="row">{page && <button type="button" onClick={() => history.back()}>Previous page</button>}{v.next_cursor && <button type="button" onClick={() => setQuery("cursor", v.next_cursor)}>Next page</button>}</p>
      {seen && <section class="panel" aria-label="Record"><h2>{seen.method} {seen.uri}</h2><p class="row"><Badge text={seen.action} tone="off" /><button type="button" onClick={() => show(undefined)}>Close</button></p>{seen.diff && <><h3>Changes</h3><Text label="Changes" value={object(seen.diff)} /></>}{seen.changes && <><h3>Changes</h3><Text label="Changes" value={object(seen.changes)} /></>}<h3>Body</h3><Text label="Body" value={object(seen.request_body)} /><h3>Record</h3><Text label="Record" value={seen} /></section>}</>}</State></>;
}
