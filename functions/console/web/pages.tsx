import { useEffect, useRef, useState } from "preact/hooks";
import { address, call, can, inRoom, ofOrganisation, room, workspace } from "./api";
import { count, date, dollars, millis, moment, percent, title } from "./format";
import { startWith } from "./modelkey";
import { Views } from "./views";
import { Badge, between, Copy, ErrorView, Facts, failureOf, go, Head, here, Link, Plot, Range, rangeOf, setQuery, State, Status, Table, Text, useCalls } from "./ui";

const query = () => new URLSearchParams(location.search);

function change(now: number, before: number | undefined): string {
  if (before == null) return "";
  if (before === 0) return now === 0 ? "as before" : "none before";
  const by = (now - before) / before * 100;
  return (by >= 0 ? "+" : "") + by.toFixed(0) + "% vs previous";
}

const snippets: [string, () => string][] = [
  ["curl", () => `curl ${location.origin}/v1/chat/completions -H "x-gateway-api-key: $GATEWAY_WORKSPACE_KEY" -H "x-gateway-provider: @mock" -H "content-type: application/json" -d '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}'`],
  ["Python", () => `import os\nfrom openai import OpenAI\n\nclient = OpenAI(base_url="${location.origin}/v1", api_key=os.environ["GATEWAY_WORKSPACE_KEY"],\n                default_headers={"x-gateway-provider": "@mock"})\nprint(client.chat.completions.create(model="gpt-4o-mini",\n      messages=[{"role": "user", "content": "Hello"}]).choices[0].message.content)`],
  ["TypeScript", () => `import OpenAI from "openai";\n\nconst client = new OpenAI({ baseURL: "${location.origin}/v1", apiKey: process.env.GATEWAY_WORKSPACE_KEY,\n  defaultHeaders: { "x-gateway-provider": "@mock" } });\nconst r = await client.chat.completions.create({ model: "gpt-4o-mini",\n  messages: [{ role: "user", content: "Hello" }] });\nconsole.log(r.choices[0].message.content);`],
  ["Claude Code", () => `export ANTHROPIC_BASE_URL=${location.origin}\nexport ANTHROPIC_AUTH_TOKEN=$GATEWAY_WORKSPACE_KEY\nexport ANTHROPIC_CUSTOM_HEADERS="x-gateway-provider: @mock-anthropic"\nclaude`],
  ["Codex", () => `# ~/.codex/config.toml\nmodel_provider = "gateway"\n[model_providers.gateway]\nname = "Gateway"\nbase_url = "${location.origin}/v1"\nenv_key = "GATEWAY_WORKSPACE_KEY"\nwire_api = "responses"\nhttp_headers = { "x-gateway-provider" = "@mock" }`],
];

// useTail follows the log while on. A connection that is cut comes back by itself and goes
// on where it ended; one that was refused is tried again after a while.
function useTail(on: boolean, each: (log: any) => void) {
  const [state, set] = useState<"off" | "open" | "waiting">("off");
  useEffect(() => {
    if (!on) return set("off");
    let tail: EventSource, timer = 0;
    const take = (e: MessageEvent) => { try { each(JSON.parse(e.data)); } catch { /* a comment */ } };
    const open = () => {
      tail = new EventSource(address("/logs/tail", inRoom()));
      tail.onopen = () => set("open");
      tail.onerror = () => {
        set("waiting");
        if (tail.readyState !== EventSource.CLOSED) return;
        clearTimeout(timer);
        // The call notices a session that has ended.
        timer = setTimeout(() => call("/session").then((s) => s.type === "none" ? dispatchEvent(new Event("console:ended")) : open(), () => tail.onerror?.(new Event("error"))), 3000) as any;
      };
      tail.addEventListener("log", take);
    };
    open();
    return () => { clearTimeout(timer); tail.onerror = null; tail.close(); };
  }, [on, workspace()]);
  return state;
}

// FirstRequest shows how to send a request, and when one arrives.
function FirstRequest({ arrived }: { arrived: () => void }) {
  const [lang, pick] = useState("curl"), [seen, see] = useState<any>();
  const state = useTail(can(["logs.list"]), (log) => see(log));
  const text = snippets.find(([n]) => n === lang)![1]();
  return <section class="empty first" aria-label="First request"><h2>Send your first request</h2>
    <p>There are no requests in this time. Put a workspace key into <code>GATEWAY_WORKSPACE_KEY</code>, name a provider by its slug, and run:</p>
    <p class="tabs">{snippets.map(([n]) => <button type="button" aria-pressed={n === lang} onClick={() => pick(n)}>{n}</button>)}</p>
    <pre tabIndex={0} aria-label="Command">{text}</pre>
    <p class="row"><Copy text={text} label="Copy command" />{can(["workspace_service_api_keys.create"], "manager") && <Link class="button" to="/console/keys/new">Create a workspace key</Link>}</p>
    <p role="status" class="arrival">{seen ? <><Badge text="Your request arrived" tone="good" /> <Link to={"/console/logs/" + encodeURIComponent(seen.id)}>See what happened to it</Link> <button type="button" onClick={arrived}>Show all requests</button></> : state === "open" ? <Badge text="Waiting for a request" tone="wait" /> : <span class="quiet">Refresh after the request.</span>}</p></section>;
}

const amount = (type: string, n: number) => type === "cost" ? dollars(n) : count(n) + " " + type;

// holder leads to what has a limit.
function holder(r: any) {
  const at = ({ policy: "budgets/", key: "keys/", workspace: "organization/", provider: "providers/", integration: "providers/integrations/" } as Record<string, string>)[r.kind];
  const id = r.kind === "provider" || r.kind === "integration" ? r.name : r.id, inside = r.kind !== "workspace" && r.workspace_id && r.workspace_id !== room() ? "?workspace=" + r.workspace_id : "";
  return <><Link to={"/console/" + at + encodeURIComponent(id) + inside}>{r.name ?? r.id}</Link>{r.value_key && <> <code>{r.value_key}</code></>}</>;
}

function Limits({ rows }: { rows: any[] }) {
  return <><h2>Limits closest to their end</h2><Table label="Limits closest to their end" rows={rows} columns={[["Of", (r: any) => r.kind], ["Name", holder], ["Used", (r: any) => percent(r.used_share * 100), "n"], ["Left", (r: any) => amount(r.type, r.available), "n"], ["Limit", (r: any) => amount(r.type, r.credit_limit), "n"], ["Next reset", (r: any) => r.next_reset_at ? date(r.next_reset_at) : "never"], ["Status", (r: any) => <Badge text={r.status} />]]} /></>;
}

// Alerts are the limits of which an alert was sent in their period.
function Alerts({ rows }: { rows: any[] }) {
  return <><h2>Alerts</h2><Table label="Alerts" rows={rows} columns={[["Alert", (r: any) => r.is_exhausted_alerts_sent ? <Badge text="exhausted" /> : <Badge text="threshold reached" tone="wait" />], ["Of", (r: any) => r.kind], ["Name", holder], ["Used", (r: any) => amount(r.type, r.current_usage), "n"], ["Limit", (r: any) => amount(r.type, r.credit_limit), "n"], ["Until", (r: any) => r.next_reset_at ? date(r.next_reset_at) : "the limit is raised"]]} />
    {can(["audit_logs.list"], "admin") && ofOrganisation() && <p><Link to="/console/organization/audit?resource_type=budgets&range=30d">When alerts were sent</Link></p>}</>;
}

export function Overview() {
  const range = rangeOf(query());
  const got = useCalls("overview " + range + workspace(), (s) => Promise.all([
    call("/analytics/graphs", { ...between(range), ...inRoom(), include: "requests,cost,latency,errors,tokens,cache/hit-rate", compare: "previous" }, { signal: s }),
    can(["policies.list"]) ? call("/policies/limits", { workspace_id: workspace() || (ofOrganisation() ? "" : room()), page_size: "50" }, { signal: s }) : { data: [] },
  ]));
  return <><Head title="What does the gateway do?"><Range value={range} /></Head>
    <State of={got}>{([all, limits]) => {
      const { requests, cost, latency, errors, tokens } = all.graphs, cache = all.graphs["cache/hit-rate"];
      const alerts = limits.data.filter((r: any) => r.is_threshold_alerts_sent || r.is_exhausted_alerts_sent).slice(0, 10);
      if (!requests.summary.total) return <FirstRequest arrived={got.again} />;
      const saved = (g: any) => { const p = g?.data_points?.at(-1); return p ? p.cumulative_simple_cache_savings_usd + p.cumulative_semantic_cache_savings_usd : undefined; };
      const tiles: [string, string, string][] = [
        ["Spend", dollars(cost.summary.total / 100), change(cost.summary.total, cost.previous?.summary.total)],
        ["Requests", count(requests.summary.total), change(requests.summary.total, requests.previous?.summary.total)],
        ["Errors", count(errors.summary.total), change(errors.summary.total, errors.previous?.summary.total)],
        ["Latency p50", millis(latency.summary.p50), change(latency.summary.p50, latency.previous?.summary.p50 || undefined)],
        ["Latency p95", millis(latency.summary.p95 ?? latency.summary.p99), change(latency.summary.p95 ?? latency.summary.p99, (latency.previous?.summary.p95 ?? latency.previous?.summary.p99) || undefined)],
        ["Tokens", count(tokens.summary.total), change(tokens.summary.total, tokens.previous?.summary.total)],
        ["Cache savings", dollars(saved(cache) ?? 0), percent(cache.summary.rate) + " of requests"],
      ];
      return <><dl class="tiles">{tiles.map(([name, value, note]) => <div><dt>{name}</dt><dd>{value}<small>{note}</small></dd></div>)}</dl>
        <div class="plots"><Plot title="Spend" points={cost.data_points.map((p: any) => [p.timestamp, p.total / 100])} format={dollars} />
        <Plot title="Requests" points={requests.data_points.map((p: any) => [p.timestamp, p.total])} format={count} />
        <Plot title="Latency p50" points={latency.data_points.map((p: any) => [p.timestamp, p.p50])} format={millis} />
        <Plot title="Errors" points={errors.data_points.map((p: any) => [p.timestamp, p.total])} format={count} /></div>
        {alerts.length > 0 && <Alerts rows={alerts} />}{limits.data.length > 0 && <Limits rows={limits.data.slice(0, 5)} />}</>;
    }}</State></>;
}

const filters: [string, string][] = [["ai_model", "Model"], ["status_code", "Status"], ["trace_id", "Trace id"], ["virtual_keys", "Provider"], ["configs", "Config"], ["api_key_ids", "API key"],
  ["user_ids", "User"], ["end_users", "End user"], ["session_id", "Session"], ["agent_id", "Agent"], ["prompt_slug", "Prompt"], ["cache_status", "Cache"], ["cost_min", "Cost from, cents"], ["cost_max", "Cost to, cents"], ["total_units_min", "Tokens from"], ["metadata", "Metadata as JSON"]];
const usual = 6; // filters that are always shown
const cacheText = (s: string) => String(s).toLowerCase().replaceAll("_", " ");
const columns = (): any[] => [
  ["Time", (r: any) => <Link to={"/console/logs/" + encodeURIComponent(r.id)} title={r.created_at}>{moment(r.created_at)}</Link>], ["Status", (r: any) => <Status code={r.response_status_code} />],
  ["Model", (r: any) => r.ai_model ?? "–"], ["Provider", (r: any) => r.virtual_key ?? r.ai_org ?? "–"], ["Endpoint", (r: any) => r.endpoint], ["Tokens", (r: any) => count(r.total_units), "n"],
  ["Latency", (r: any) => millis(r.response_time), "n"], ["Cost", (r: any) => r.is_priced ? dollars(r.cost_usd) : "not priced", "n"], ["Cache", (r: any) => cacheText(r.cache_status)],
];

// maxTail is how many requests the live table holds.
const maxTail = 100;

export function Logs() {
  const q = query(), range = rangeOf(q), cursor = q.get("cursor") ?? "";
  const [live, follow] = useState(false), [fresh, add] = useState({ n: 0, rows: [] as any[] });
  const arrived = useRef<any[]>([]); // since the table was last drawn: once every 100 ms, however many arrive
  const tail = useTail(live, (log) => {
    if (arrived.current.unshift(log) > 1) return;
    setTimeout(() => {
      const logs = arrived.current.splice(0);
      add((was) => ({ n: was.n + logs.length, rows: [...logs, ...was.rows].slice(0, maxTail) }));
    }, 100);
  });
  const asked = Object.fromEntries(filters.map(([name]) => [name, q.get(name) ?? ""]));
  const got = useCalls("logs " + q, (s) => call("/logs", { ...between(range), ...asked, ...inRoom(), cursor, page_size: "50" }, { signal: s }));
  const filtered = filters.some(([n]) => q.get(n)), [more, showMore] = useState(filters.slice(usual).some(([n]) => q.get(n)));
  return <><Head title="Which requests were made?"><Views page="logs" /><Range value={range} /></Head>
    <form class="filters" key={String(q)} onSubmit={(e) => e.preventDefault()}>{filters.slice(0, more ? undefined : usual).map(([name, label]) => <label>{label} <input name={name} value={asked[name]} onChange={(e: any) => setQuery(name, e.target.value.trim())} /></label>)}
      <button type="button" aria-expanded={more} onClick={() => showMore(!more)}>{more ? "Fewer filters" : "More filters"}</button><button type="button" aria-pressed={live} onClick={() => { add({ n: 0, rows: [] }); follow(!live); }}>{live ? "Pause live" : "Live"}</button><button type="button" onClick={got.again}>Refresh</button>{can(["logs.export"]) && room() && <Link class="button" to={"/console/logs/exports/new?filters=" + encodeURIComponent(JSON.stringify({ ...between(range), ...Object.fromEntries(Object.entries(asked).filter(([, v]) => v)) }))}>Export</Link>}{filtered && <Link to="/console/logs">Remove the filters</Link>}</form>
    {live && <section aria-label="Live"><p role="status"><Badge text={tail === "open" ? "Live" : "Connecting"} tone={tail === "open" ? "good" : "wait"} /> <span class="quiet">{count(fresh.n)} new requests, without the filters</span></p>{fresh.n > 0 && <Table label="Live requests" rows={fresh.rows} columns={columns()} />}</section>}
    <State of={got}>{(page) => page.data.length === 0
      ? (q.size > (q.has("range") ? 1 : 0) + (q.has("workspace") ? 1 : 0) ? <p class="empty">No request passes these filters. <Link to="/console/logs">Remove the filters</Link></p> : <FirstRequest arrived={got.again} />)
      : <><p class="quiet">{count(page.total)} requests</p><Table label="Requests" rows={page.data} columns={columns()} />
        <p class="row">{cursor && <button type="button" onClick={() => history.back()}>Previous page</button>} {page.next_cursor && <button type="button" onClick={() => setQuery("cursor", page.next_cursor)}>Next page</button>}</p></>}</State></>;
}

// lastMessage is the last text that a user wrote.
function lastMessage(request: any): string {
  const body = request?.body ?? request, all = Array.isArray(body?.messages) ? body.messages : [];
  return all.filter((m: any) => m?.role === "user" && typeof m.content === "string").at(-1)?.content ?? "";
}

const verdicts = (log: any): any[] => [["before_request_hooks", "request"], ["after_request_hooks", "response"]].flatMap(([name, when]) => (log.hook_results?.[name] ?? []).map((h: any) => ({ ...h, when })));

export function Request({ id }: { id: string }) {
  const [tab, show] = useState("body"), [rated, rate] = useState(""), [failure, fail] = useState<any>();
  const at = "/logs/" + encodeURIComponent(id);
  const got = useCalls("request " + id, (s) => Promise.all([call(at, {}, { signal: s }), call(at + "/explain", {}, { signal: s })]));
  return <><p class="crumb"><Link to="/console/logs">Logs</Link></p><Head title="What happened to this request?" /><p class="id">{id}</p>
    <State of={got}>{([log, why]) => {
      const m = log.metrics ?? log;
      const feedback = async (value: number) => { fail(undefined); try { await call("/feedback", {}, { method: "POST", body: { trace_id: m.trace_id, value } }); rate(value > 0 ? "Rated as good" : "Rated as bad"); } catch (e) { fail(failureOf(e)); } };
      return <><Facts of={[["Status", <Status code={why.status} />], ["Model", m.ai_model], ["Provider", m.virtual_key ?? m.ai_org], ["Latency", millis(why.timing.total_ms)], ["First byte", millis(why.timing.first_byte_ms)],
        ["Cost", m.is_priced ? dollars(why.cost_usd) : "not priced"], ["Tariff", m.tariff], ["Tokens", count(m.total_units)], ["Cache", cacheText(m.cache_status)], ["Config", m.config], ["API key", m.api_key_id && <Link to={"/console/keys/" + m.api_key_id}>{m.api_key_id}</Link>], ["Trace id", m.trace_id]]} />{m.error_message && <p class="wrong">{m.error_message}</p>}
        <h2>Steps</h2><ol class="steps">{why.steps.map((s: any) => <li><span>{s.text}</span>{s.status != null && <Status code={s.status} />}<small>{[s.start_ms != null && "at " + millis(s.start_ms), s.took_ms != null && "took " + millis(s.took_ms), s.path].filter(Boolean).join(" · ")}</small></li>)}</ol>
        <h2>Attempts</h2>{(log.attempts ?? []).length === 0 ? <p class="quiet">No provider was called.</p> : <Table label="Attempts" rows={log.attempts} columns={[["Model", (a: any) => a.ai_model], ["Provider", (a: any) => a.virtual_key ?? a.ai_org], ["Target", (a: any) => a.option ?? "–"], ["Status", (a: any) => <Status code={a.response_status_code} />], ["Latency", (a: any) => millis(a.latency), "n"], ["Cost", (a: any) => dollars(a.cost_usd), "n"]]} />}
        {Object.values(log.usage ?? {}).some((n: any) => n > 0) && <><h2>Usage</h2><Facts of={Object.entries(log.usage as Record<string, number>).filter(([, n]) => n > 0).map(([k, n]) => [title(k), count(n)])} /></>}
        {(log.decision?.losses ?? []).length > 0 && <><h2>Lost in translation</h2><p class="quiet">The provider's format has no place for these fields of the request.</p><ul class="things">{log.decision.losses.map((f: string) => <li><code>{f}</code></li>)}</ul></>}
        {verdicts(log).length > 0 && <><h2>Guardrails</h2><Table label="Guardrails" rows={verdicts(log)} columns={[["Guardrail", (h: any) => <Link to={"/console/guardrails/" + encodeURIComponent(h.id)}>{h.id}</Link>], ["When", (h: any) => h.when], ["Verdict", (h: any) => <Badge text={h.deny ? "denied" : h.verdict ? "passed" : "failed"} tone={h.deny ? "bad" : h.verdict ? "good" : "wait"} />], ["Checks", (h: any) => h.checks.map((c: any) => c.id + (c.errored ? ": error" : c.verdict ? ": passed" : ": failed")).join(", "), "w"], ["Took", (h: any) => millis(h.execution_time), "n"]]} /></>}
        <h2>Feedback</h2>{(log.feedback ?? []).length > 0 ? <Text value={log.feedback} label="Feedback" /> : <p class="quiet">{rated || "There is no feedback."}</p>}
        {can(["feedbacks.write"]) && <p class="row"><button type="button" onClick={() => feedback(1)}>Good</button><button type="button" onClick={() => feedback(-1)}>Bad</button></p>}{failure && <ErrorView failure={failure} />}
        <h2>Content</h2><p class="row"><button type="button" aria-pressed={tab === "body"} onClick={() => show("body")}>Bodies</button><button type="button" aria-pressed={tab === "json"} onClick={() => show("json")}>JSON</button>
          {can(["prompts.list"]) && m.endpoint === "chatComplete" && <button type="button" onClick={() => { startWith({ model: m.ai_model, provider: m.virtual_key, message: lastMessage(log.request) }); go(here("/console/playground")); }}>Open in the playground</button>}<Copy label="Copy as curl" text={`curl ${location.origin}${address(at)} -H "x-gateway-api-key: $GATEWAY_ADMIN_KEY"`} /></p>
        {tab === "json" ? <Text value={log} label="Log as JSON" /> : log.request || log.response
          ? <><h3>Request</h3><Text value={log.request} label="Request" /><h3>Response</h3><Text value={log.response} label="Response" /></>
          : <p class="quiet">{log.bodies_hidden ? "You may not see the bodies of this request." : "No bodies were stored for this request."}</p>}</>;
    }}</State></>;
}

const groups: [string, string][] = [["model", "Model"], ["users", "User"], ["api_key", "API key"], ["config", "Config"], ["workspace", "Workspace"], ["provider", "Provider"], ["prompt", "Prompt"], ["session", "Agent session"], ["agent", "Sub-agent"], ["status_code", "Status"], ["metadata", "Metadata"]];

const perPage = 50;

export function Usage() {
  const q = query(), range = rangeOf(q), asked = q.get("by") ?? "", key = q.get("key") ?? "", session = q.get("session") ?? "", above = q.get("above") ?? "", page = Number(q.get("cursor")) || 0;
  const by = groups.find(([k]) => k === asked && (k !== "workspace" || ofOrganisation())) ?? groups[0];
  const path = by[0] === "metadata" ? "/analytics/groups/metadata/" + encodeURIComponent(key || "_user") : "/analytics/groups/" + by[0];
  const where = { ...between(range), ...inRoom(), session_id: session, parent_agent_id: above };
  const got = useCalls("usage " + path + q, (s) => Promise.all([call(path, { ...where, columns: "cost,error_count,total_tokens,p95_latency,cache_hit_rate", order_by: "cost:desc", page_size: String(perPage), current_page: String(page) }, { signal: s }), call("/analytics/graphs/cost", where, { signal: s })]));
  const value = (r: any) => String(r[by[0]] ?? r.user ?? r.metadata_value ?? "–");
  const to = (v: string): string | undefined => ({ api_key: "/console/keys/" + encodeURIComponent(v), model: "/console/logs?ai_model=" + encodeURIComponent(v), session: "/console/usage?by=agent&range=" + range + "&session=" + encodeURIComponent(v) } as Record<string, string>)[by[0]];
  const link = (r: any) => { const v = value(r), at = to(v); return at ? <Link to={at}>{v}</Link> : v; };
  const below = (r: any) => { const v = encodeURIComponent(value(r)), of = "&range=" + range + (session && "&session=" + encodeURIComponent(session)); return <span class="row"><Link to={"/console/usage?by=agent&above=" + v + of}>Below it</Link><Link to={"/console/logs?agent_id=" + v + of.replace("&session=", "&session_id=")}>Requests</Link></span>; };
  const columns: any[] = [[by[1], link], ["Spend", (r: any) => dollars(r.cost / 100), "n"], ["Share", (r: any) => cost(r), "n"], ["Requests", (r: any) => count(r.requests), "n"], ["Errors", (r: any) => count(r.error_count), "n"], ["Tokens", (r: any) => count(r.total_tokens), "n"], ["Latency p95", (r: any) => millis(r.p95_latency), "n"], ["Cache hits", (r: any) => percent(r.cache_hit_rate), "n"]];
  let total = 0;
  const cost = (r: any) => total ? percent(r.cost / total * 100) : "–";
  if (by[0] === "agent") columns.push(["", below]);
  const narrowed = [session && "session " + session, above && "agents below " + above].filter(Boolean);
  return <><Head title="Who spends what?"><Views page="analytics" later /><label>By <select value={by[0]} onChange={(e: any) => setQuery("by", e.target.value)}>{groups.filter(([k]) => k !== "workspace" || ofOrganisation()).map(([k, t]) => <option value={k}>{t}</option>)}</select></label>{by[0] === "metadata" && <label>Key <input value={key} placeholder="_user" onChange={(e: any) => setQuery("key", e.target.value.trim())} /></label>}<Range value={range} /></Head>
    {narrowed.length > 0 && <p class="row"><span class="quiet">Only {narrowed.join(", ")}.</span> <Link to={"/console/usage?by=" + by[0] + "&range=" + range}>Show all</Link></p>}
    <State of={got}>{([rows, graph]) => {
      total = graph.summary.total;
      if (rows.data.length === 0) return by[0] === "model" && !narrowed.length && !page ? <FirstRequest arrived={got.again} /> : <p class="empty">No request of this time has {by[0] === "metadata" ? "this metadata key" : "a value to group by: " + by[1].toLowerCase()}. <Link to={"/console/usage?range=" + range}>Group by model</Link></p>;
      return <><dl class="tiles"><div><dt>Spend</dt><dd>{dollars(total / 100)}</dd></div><div><dt>{by[1] === "Status" ? "Statuses" : by[1] === "Metadata" ? "Values" : by[1] + "s"}</dt><dd>{count(rows.total)}</dd></div></dl>
        <Plot title="Spend" points={graph.data_points.map((p: any) => [p.timestamp, p.total / 100])} format={dollars} />
        <Table label="Usage" rows={rows.data} columns={columns} />
        {rows.total > perPage && <p class="row">{page > 0 && <button type="button" onClick={() => history.back()}>Previous page</button>}<span class="quiet">{count(page * perPage + 1)} to {count(page * perPage + rows.data.length)} of {count(rows.total)}, by spend</span>{(page + 1) * perPage < rows.total && <button type="button" onClick={() => setQuery("cursor", String(page + 1))}>Next page</button>}</p>}</>;
    }}</State></>;
}
