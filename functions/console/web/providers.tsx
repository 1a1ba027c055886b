// Health, credentials and models of providers.
import { useState } from "preact/hooks";
import { call, can, now, room } from "./api";
import { count, dollars, millis, since } from "./format";
import { Remove } from "./remove";
import { Badge, Confirm, ErrorView, Facts, failureOf, Head, Link, setQuery, State, Table, useCalls } from "./ui";

type P = { row: any; again: () => void };

const when = (iso: string | null) => iso ? <span title={iso}>{since(iso)}</span> : "–";
const credentials = (rows: any[]) => <Table label="Credentials" rows={rows} columns={[["Label", (c: any) => c.label || "–"], ["Secret", (c: any) => <code>{c.masked_key ?? "–"}</code>], ["Weight", (c: any) => count(c.weight), "n"], ["Health", (c: any) => <Badge text={c.status ?? "unknown"} />], ["Since", (c: any) => when(c.since)], ["Cause", (c: any) => c.cause ?? "–"]]} />;
const health = (signal: AbortSignal) => call("/providers/health", { workspace_id: room() }, { signal });

// join adds the health of credentials to what a resource says about them.
const join = (stored: any[] = [], known: any[] = []) => stored.map((c) => ({ ...c, ...known.find((k) => k.label === c.label) })).concat(known.filter((k) => !stored.some((c) => c.label === k.label)));

export function ProviderDetail({ row }: P) {
  const got = useCalls("health of " + row.slug, health);
  const [result, set] = useState<any>(), [failure, fail] = useState<any>(), [busy, work] = useState(false);
  const test = async () => { work(true); fail(undefined); set(undefined); try { set(await call("/providers/" + encodeURIComponent(row.slug) + "/test", { workspace_id: room() }, { method: "POST" })); } catch (e) { fail(failureOf(e)); } work(false); };
  return <>{can(["virtual_keys.update", "providers.update"], "manager") && <div class="panel"><h2>Test</h2><p>Reads the provider's list of models with the stored credentials. It costs nothing.</p><p class="row"><button type="button" disabled={busy} onClick={test}>{busy ? "Testing…" : "Test the provider"}</button>
      {result && <span role="status"><Badge text={result.success ? "It works" : "Failed: " + (result.cause ?? "unknown")} tone={result.success ? "good" : "bad"} /></span>}</p>
      {failure && <ErrorView failure={failure} again={test} />}{result && <Facts of={[["Message", result.message], ["Host", result.host], ["Status", result.status_code], ["Models", result.models == null ? null : count(result.models)], ["Time", millis(result.response_time_ms)]]} />}</div>}
    <h2>Health</h2><State of={got}>{(v) => {
      const h = v.data.find((x: any) => x.slug === row.slug && x.workspace_id === row.workspace_id);
      if (!h) return <p class="quiet">There is no health of this provider.</p>;
      const all = join(row.credentials, h.credentials);
      return <><Facts of={[["State", <Badge text={h.status} />], ["Since", when(h.since)], ["Calls, 15 minutes", count(h.calls)], ["Failures", count(h.failures)], ["Latency", millis(h.latency_ms)], ["Cause", h.cause]]} />
        {all.length > 0 && <><h2>Credentials</h2>{credentials(all)}</>}{row.integration_id && can(["organisation_integrations.read", "workspace_integrations.read"]) && <p>Its credentials are those of the integration <Link to={"/console/providers/integrations/" + encodeURIComponent(row.integration_id)}>{row.integration_id}</Link>.</p>}</>;
    }}</State></>;
}

export function IntegrationDetail({ row }: P) {
  const sees = can(["virtual_keys.list", "providers.list"]), several = row.credentials?.length > 0;
  const [tab, show] = useState(several ? "credentials" : "models");
  return <><p class="tabs">{[["credentials", "Credentials"], ["models", "Models"]].map(([k, t]) => <button type="button" aria-pressed={tab === k} onClick={() => show(k)}>{t}</button>)}</p>
    {tab === "models" ? <Models row={row} /> : !several ? <p class="quiet">It has one credential{row.masked_key && <>: <code>{row.masked_key}</code></>}. With several, requests are shared among them, and one that fails is left out for a time.</p>
      : sees ? <Credentials row={row} /> : credentials(row.credentials)}</>;
}

// Credentials shows those of an integration as the providers that use it see them.
function Credentials({ row }: { row: any }) {
  const got = useCalls("credentials " + row.slug, (s) => Promise.all([health(s), call("/providers", { workspace_id: room(), page_size: "1000" }, { signal: s })]));
  return <State of={got}>{([known, providers]) => {
    const uses = new Set(providers.data.filter((p: any) => p.integration_id === row.slug || p.integration_id === row.id).map((p: any) => p.slug));
    const order = ["unhealthy", "degraded", "healthy", "unknown"], worst = new Map<string, any>();
    for (const h of known.data) if (uses.has(h.slug)) for (const c of h.credentials) if (!worst.has(c.label) || order.indexOf(c.status) < order.indexOf(worst.get(c.label).status)) worst.set(c.label, c);
    return <>{credentials(join(row.credentials, [...worst.values()]))}<p class="quiet">{uses.size === 0 ? "No provider of this workspace uses this integration." : "Used by " + [...uses].map((u) => "@" + u).join(", ") + "."}</p></>;
  }}</State>;
}

const perMillion = (p: any) => p?.price_usd == null ? "–" : dollars(p.price_usd * 1e6);

function Models({ row }: { row: any }) {
  const [find, search] = useState(""), [most, more] = useState(50);
  const [prices, price] = useState<Record<string, any>>({});
  const at = "/integrations/" + encodeURIComponent(row.slug) + "/models", place: Record<string, string> = row.type === "workspace" ? { workspace_id: room() } : {};
  const got = useCalls("models " + row.slug, (s) => call(at, place, { signal: s })), [failure, fail] = useState<any>();
  const writes = can(["organisation_integrations.update", "workspace_integrations.update"], "manager"), [busy, begin] = useState(false);
  const put = async (model: any) => { await call(at, place, { method: "PUT", body: { models: [model] } }); got.again(); };
  const turn = async (m: any) => { begin(true); fail(undefined); try { await put({ slug: m.slug, enabled: !m.enabled }); } catch (e) { fail(failureOf(e)); } begin(false); };
  const ask = (m: string) => call("/model-configs/pricing/" + encodeURIComponent(row.ai_provider_id) + "/" + encodeURIComponent(m)).then((p) => price((was) => ({ ...was, [m]: p })), (e) => price((was) => ({ ...was, [m]: { error: e.message } })));
  return <State of={got}>{(v) => {
    const all = v.models.filter((m: any) => (m.slug + " " + (m.name ?? "")).toLowerCase().includes(find.toLowerCase()));
    return <><div class="filters"><label>Find <input value={find} onInput={(e: any) => search(e.target.value)} /></label>{writes && <NewModel put={put} />}<span class="quiet">{count(all.length)} models. Prices are for one million tokens.</span></div>{failure && <ErrorView failure={failure} />}
      <Table label="Models" rows={all.slice(0, most)} columns={[
        ["Model", (m: any) => m.slug], ["Enabled", (m: any) => <Badge text={m.enabled ? "active" : "inactive"} />], ["Origin", (m: any) => m.is_custom ? "custom" : m.is_finetune ? "fine-tuned" : "catalog"],
        ["Input", (m: any) => prices[m.slug] ? perMillion(prices[m.slug].pay_as_you_go?.request_token) : <button type="button" onClick={() => ask(m.slug)} aria-label={"Price of " + m.slug}>Price</button>, "n"],
        ["Output", (m: any) => perMillion(prices[m.slug]?.pay_as_you_go?.response_token), "n"], ["Tariff", (m: any) => prices[m.slug]?.tariff ?? prices[m.slug]?.error ?? ""],
        ["", (m: any) => writes && <span class="row"><button type="button" aria-label={(m.enabled ? "Disable " : "Enable ") + m.slug} disabled={busy} onClick={() => turn(m)}>{m.enabled ? "Disable" : "Enable"}</button>{(m.is_custom || m.is_finetune) && <Remove name={m.slug} path={at} params={{ ...place, slugs: m.slug }} done={got.again} />}</span>],
      ]} />{all.length > most && <p><button type="button" onClick={() => more(most + 200)}>Show more</button></p>}</>;
  }}</State>;
}

const ended = (m: any) => m.shutdown_date && Date.parse(m.shutdown_date) <= now();
const schemes = (p: any) => [...new Set(p.auth.map((a: any) => a.scheme))].join(" or ");

// NewModel adds a model that the catalog does not list. A model without a price is not
// charged, so that budgets reject its requests.
function NewModel({ put }: { put: (model: any) => Promise<void> }) {
  const [v, set] = useState({ slug: "", base: "", input: "", output: "" });
  const field = (name: keyof typeof v, label: string, more: any = {}) => <div class="field"><label for={"model-" + name}>{label}</label><input id={"model-" + name} autocomplete="off" value={v[name]} onInput={(e: any) => set({ ...v, [name]: e.target.value })} {...more} /></div>;
  const cents = (dollars: string) => ({ price: Number(dollars || 0) / 1e4 }); // of one token
  const add = async () => {
    await put({ slug: v.slug.trim(), enabled: true, is_custom: true, base_model_slug: v.base.trim() || undefined, pricing_config: v.input || v.output ? { type: "static", pay_as_you_go: { request_token: cents(v.input), response_token: cents(v.output) } } : undefined });
    set({ slug: "", base: "", input: "", output: "" });
  };
  const price = { type: "number", min: 0, step: "any" };
  return <Confirm label="Add a model" title="Add a model" tone="plain" action={add}>{field("slug", "Model", { required: true, autofocus: true })}{field("base", "Behaves like", { placeholder: "gpt-4o" })}{field("input", "Input, dollars for one million tokens", price)}{field("output", "Output, dollars for one million tokens", price)}</Confirm>;
}

export function Catalog() {
  const q = new URLSearchParams(location.search), find = (q.get("find") ?? "").toLowerCase(), operation = q.get("operation") ?? "";
  const got = useCalls("catalog", (s) => call("/providers/catalog", {}, { signal: s }));
  const [seen, show] = useState<any>();
  return <><Head title="Which providers are supported?" /><State of={got}>{(v) => {
    const operations = [...new Set<string>(v.data.flatMap((p: any) => p.operations))].sort();
    const rows = v.data.filter((p: any) => (!operation || p.operations.includes(operation)) && (p.id + " " + p.name + " " + p.aliases.join(" ")).toLowerCase().includes(find));
    return <><form class="filters" onSubmit={(e) => e.preventDefault()}><label>Find <input value={q.get("find") ?? ""} onChange={(e: any) => setQuery("find", e.target.value.trim())} /></label><label>Operation <select value={operation} onChange={(e: any) => setQuery("operation", e.target.value)}><option value="">Any</option>{operations.map((o) => <option value={o}>{o}</option>)}</select></label><span class="quiet">{count(rows.length)} of {count(v.data.length)} providers</span></form>
      {seen && <section class="panel" aria-label={seen.name}><header><h2>{seen.name}</h2><button type="button" onClick={() => show(undefined)}>Close</button></header>
        <Facts of={[["Type", <code>{seen.id}</code>], ["Address", seen.base_url], ["Default model", seen.default_model], ["Also called", seen.aliases.join(", ")], ["Sign-in", schemes(seen)], ["Operations", seen.operations.join(", ")]]} />
        {seen.ending_models.length > 0 && <Table label="Models that end" rows={seen.ending_models} columns={[["Model", (m: any) => <code>{m.model}</code>], ["Announced", (m: any) => m.deprecation_date ?? "–"], ["Ends", (m: any) => m.shutdown_date ?? "not announced"], ["State", (m: any) => ended(m) ? <Badge text="ended" tone="off" /> : <Badge text={m.shutdown_date ? "ends soon" : "deprecated"} tone="wait" />]]} />}
        {seen.fields.length > 0 && <Table label="Fields" rows={seen.fields} columns={[["Field", (f: any) => <code>{f.name}</code>], ["Rule", (f: any) => f.rule || "–"], ["Secret", (f: any) => f.secret ? "yes" : "no"], ["Values", (f: any) => f.values?.join(", ") || "any"]]} />}</section>}
      {rows.length === 0 ? <p class="empty">No provider passes these filters.</p> : <Table label="Catalog" rows={rows} columns={[["Name", (p: any) => p.name], ["Type", (p: any) => <code>{p.id}</code>], ["Sign-in", (p: any) => schemes(p)], ["Operations", (p: any) => count(p.operations.length), "n"], ["Models that end", (p: any) => count(p.ending_models.filter((m: any) => !ended(m)).length), "n"], ["Address", (p: any) => p.base_url ?? "–"], ["", (p: any) => <button type="button" aria-label={"Details of " + p.name} onClick={() => { show(p); scrollTo(0, 0); }}>Details</button>]]} />}</>;
  }}</State></>;
}
