import { useState } from "preact/hooks";
import { address, call } from "./api";
import { count, dollars, millis, moment, percent } from "./format";
import { between, Copy, Link, Plot, Range, rangeOf, setQuery, State, Text, useCalls } from "./ui";

const query = () => new URLSearchParams(location.search);

function change(now: number, before: number | undefined): string {
  if (before == null) return "";
  if (before === 0) return now === 0 ? "as before" : "none before";
  const by = (now - before) / before * 100;
  return (by >= 0 ? "+" : "") + by.toFixed(0) + "% to the previous period";
}

const snippet = () => `curl ${location.origin}/v1/chat/completions -H "x-gateway-api-key: $GATEWAY_WORKSPACE_KEY" -H "x-gateway-provider: @mock" -H "content-type: application/json" -d '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}'`;

function FirstRequest() {
  return <div class="empty"><p>There are no requests in this time. Send one, with a workspace key in <code>GATEWAY_WORKSPACE_KEY</code> and the slug of a provider:</p>
    <pre tabIndex={0} aria-label="Command">{snippet()}</pre><Copy text={snippet()} label="Copy command" /></div>;
}

export function Overview() {
  const range = rangeOf(query());
  const got = useCalls("overview " + range, (s) => {
    const at = { ...between(range), compare: "previous" };
    return Promise.all(["requests", "cost", "latency"].map((g) => call("/analytics/graphs/" + g, at, "GET", s)));
  });
  return <><header><h1>What does the gateway do?</h1><Range value={range} /></header>
    <State of={got}>{([requests, cost, latency]) => {
      if (!requests.summary.total) return <FirstRequest />;
      const tiles: [string, string, string][] = [
        ["Spend", dollars(cost.summary.total / 100), change(cost.summary.total, cost.previous?.summary.total)],
        ["Requests", count(requests.summary.total), change(requests.summary.total, requests.previous?.summary.total)],
        ["Latency p50", millis(latency.summary.p50), change(latency.summary.p50, latency.previous?.summary.p50 || undefined)],
        ["Latency p99", millis(latency.summary.p99), change(latency.summary.p99, latency.previous?.summary.p99 || undefined)],
      ];
      return <><dl class="tiles">{tiles.map(([name, value, note]) => <div><dt>{name}</dt><dd>{value}<small>{note}</small></dd></div>)}</dl>
        <Plot title="Spend" points={cost.data_points.map((p: any) => [p.timestamp, p.total / 100])} format={dollars} />
        <Plot title="Requests" points={requests.data_points.map((p: any) => [p.timestamp, p.total])} format={count} />
        <Plot title="Latency p50" points={latency.data_points.map((p: any) => [p.timestamp, p.p50])} format={millis} /></>;
    }}</State></>;
}

const filters: [string, string][] = [["ai_model", "Model"], ["status_code", "Status"], ["trace_id", "Trace id"]];

export function Logs() {
  const q = query(), range = rangeOf(q), cursor = q.get("cursor") ?? "";
  const asked = Object.fromEntries(filters.map(([name]) => [name, q.get(name) ?? ""]));
  const got = useCalls("logs " + q, (s) => call("/logs", { ...between(range), ...asked, cursor, page_size: "50" }, "GET", s));
  return <><header><h1>Which requests were made?</h1><Range value={range} /></header>
    <form class="filters" key={String(q)} onSubmit={(e) => e.preventDefault()}>{filters.map(([name, label]) => <label>{label} <input name={name} value={asked[name]} onChange={(e: any) => setQuery(name, e.target.value.trim())} /></label>)}
      <button type="button" onClick={got.again}>Refresh</button></form>
    <State of={got}>{(page) => page.data.length === 0
      ? (q.size > (q.has("range") ? 1 : 0) ? <p class="empty">No request passes these filters. <Link to="/console/logs">Remove the filters</Link></p> : <FirstRequest />)
      : <><p>{count(page.total)} requests</p><div class="scroll" tabIndex={0} role="region" aria-label="Requests">
        <table><thead><tr><th>Time</th><th>Status</th><th>Model</th><th>Provider</th><th>Endpoint</th><th class="n">Tokens</th><th class="n">Latency</th><th class="n">Cost</th><th>Cache</th></tr></thead>
          <tbody>{page.data.map((r: any) => <tr><td title={r.created_at}><Link to={"/console/logs/" + encodeURIComponent(r.id)}>{moment(r.created_at)}</Link></td>
            <td><Status code={r.response_status_code} /></td><td>{r.ai_model ?? "–"}</td><td>{r.virtual_key ?? r.ai_org ?? "–"}</td><td>{r.endpoint}</td>
            <td class="n">{count(r.total_units)}</td><td class="n">{millis(r.response_time)}</td><td class="n">{r.is_priced ? dollars(r.cost_usd) : "not priced"}</td><td>{r.cache_status}</td></tr>)}</tbody></table></div>
        <p>{cursor && <button type="button" onClick={() => history.back()}>Previous page</button>} {page.next_cursor && <button type="button" onClick={() => setQuery("cursor", page.next_cursor)}>Next page</button>}</p></>}</State></>;
}

function Status({ code }: { code: number }) {
  const good = code >= 200 && code < 300 || code === 101;
  return <span class={good ? "good" : "bad"}>{good ? "✓" : "✕"} {code}</span>;
}

export function Request({ id }: { id: string }) {
  const [tab, show] = useState("body");
  const at = "/logs/" + encodeURIComponent(id);
  const got = useCalls("request " + id, (s) => Promise.all([call(at, {}, "GET", s), call(at + "/explain", {}, "GET", s)]));
  return <><header><h1>What happened to this request?</h1></header><p class="id">{id}</p>
    <State of={got}>{([log, why]) => {
      const m = log.metrics ?? log;
      const facts: [string, any][] = [["Status", <Status code={why.status} />], ["Model", m.ai_model], ["Provider", m.virtual_key ?? m.ai_org], ["Latency", millis(why.timing.total_ms)], ["First byte", millis(why.timing.first_byte_ms)],
        ["Cost", m.is_priced ? dollars(why.cost_usd) : "not priced"], ["Tariff", m.tariff], ["Tokens", count(m.total_units)], ["Cache", m.cache_status], ["Config", m.config], ["API key", m.api_key_id], ["Trace id", m.trace_id], ["Error", m.error_message]];
      return <><dl class="facts">{facts.filter(([, v]) => v != null && v !== "").map(([name, v]) => <div><dt>{name}</dt><dd>{v}</dd></div>)}</dl>
        <h2>Steps</h2><ol class="steps">{why.steps.map((s: any) => <li><span>{s.text}</span>{s.status != null && <Status code={s.status} />}<small>{s.start_ms != null && "at " + millis(s.start_ms)} {s.took_ms != null && "took " + millis(s.took_ms)} {s.path}</small></li>)}</ol>
        <h2>Attempts</h2>{(log.attempts ?? []).length === 0 ? <p>No provider was called.</p> : <div class="scroll" tabIndex={0} role="region" aria-label="Attempts"><table><thead><tr><th>Model</th><th>Provider</th><th>Target</th><th>Status</th><th class="n">Latency</th><th class="n">Cost</th></tr></thead>
          <tbody>{log.attempts.map((a: any) => <tr><td>{a.ai_model}</td><td>{a.virtual_key ?? a.ai_org}</td><td>{a.option ?? "–"}</td><td><Status code={a.response_status_code} /></td><td class="n">{millis(a.latency)}</td><td class="n">{dollars(a.cost_usd)}</td></tr>)}</tbody></table></div>}
        {(log.feedback ?? []).length > 0 && <><h2>Feedback</h2><Text value={log.feedback} label="Feedback" /></>}
        <h2>Content</h2><p class="row"><button type="button" aria-pressed={tab === "body"} onClick={() => show("body")}>Bodies</button><button type="button" aria-pressed={tab === "json"} onClick={() => show("json")}>JSON</button>
          <Copy label="Copy as curl" text={`curl ${location.origin}${address(at)} -H "x-gateway-api-key: $GATEWAY_ADMIN_KEY"`} /></p>
        {tab === "json" ? <Text value={log} label="Log as JSON" /> : log.request || log.response
          ? <><h3>Request</h3><Text value={log.request} label="Request" /><h3>Response</h3><Text value={log.response} label="Response" /></>
          : <p>{log.bodies_hidden ? "You may not see the bodies of this request." : "No bodies were stored for this request."}</p>}</>;
    }}</State></>;
}

const groups: [string, string][] = [["model", "Model"], ["api_key", "API key"], ["config", "Config"], ["workspace", "Workspace"], ["provider", "Provider"], ["prompt", "Prompt"], ["status_code", "Status"]];

export function Usage() {
  const q = query(), range = rangeOf(q), asked = q.get("by") ?? "";
  const by = groups.find(([k]) => k === asked) ?? groups[0];
  const got = useCalls("usage " + range + by[0], (s) => Promise.all([call("/analytics/groups/" + by[0], { ...between(range), columns: "cost,requests,error_count,total_tokens,p95_latency,cache_hit_rate", order_by: "cost:desc" }, "GET", s), call("/analytics/graphs/cost", between(range), "GET", s)]));
  const name = (r: any) => String(r[by[0]] ?? "–");
  return <><header><h1>Who spends what?</h1><label>By <select value={by[0]} onChange={(e: any) => setQuery("by", e.target.value)}>{groups.map(([k, t]) => <option value={k}>{t}</option>)}</select></label><Range value={range} /></header>
    <State of={got}>{([rows, cost]) => rows.data.length === 0 ? <FirstRequest /> : <>
      <dl class="tiles"><div><dt>Spend</dt><dd>{dollars(cost.summary.total / 100)}</dd></div></dl>
      <Plot title="Spend" points={cost.data_points.map((p: any) => [p.timestamp, p.total / 100])} format={dollars} />
      <div class="scroll" tabIndex={0} role="region" aria-label="Usage"><table><thead><tr><th>{by[1]}</th><th class="n">Spend</th><th class="n">Requests</th><th class="n">Errors</th><th class="n">Tokens</th><th class="n">Latency p95</th><th class="n">Cache hits</th></tr></thead>
        <tbody>{rows.data.map((r: any) => <tr><td>{name(r)}</td><td class="n">{dollars(r.cost / 100)}</td><td class="n">{count(r.requests)}</td><td class="n">{count(r.error_count)}</td><td class="n">{count(r.total_tokens)}</td><td class="n">{millis(r.p95_latency)}</td><td class="n">{percent(r.cache_hit_rate)}</td></tr>)}</tbody></table></div></>}</State></>;
}
