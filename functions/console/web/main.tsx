import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call, can, Failure, ofOrganisation, room, Session, setSession, signedIn, who, workspace } from "./api";
import { kinds } from "./kinds";
import { Logs, Overview, Request, Usage } from "./pages";
import { Item, kindOf, List, New, sees, Tabs } from "./resources";
import { Boundary, ErrorView, failureOf, go, here, lazy, Link, setQuery, Shown } from "./ui";
import "uplot.css";
import "./style.css";

const admin = () => import("./admin");
const Audit = lazy(admin, "Audit"), Playground = lazy(admin, "Playground"), Settings = lazy(admin, "Settings"), Verdicts = lazy(() => import("./details"), "Verdicts"), Catalog = lazy(() => import("./providers"), "Catalog"), Provisioning = lazy(() => import("./organization"), "Provisioning");

// Page is an entry of a section: its address below /console/, its name, what shows it, and
// whether the caller may see it.
type Page = [string, string, () => any, () => boolean];
const of = (at: string): Page => { const k = kinds.find((x) => x.at === at)!; return [at, k.tab, () => <List k={k} />, () => sees(k)]; };

const sections: [string, Page[]][] = [
  ["Overview", [["", "Overview", Overview, () => can(["analytics.view"])]]],
  ["Logs", [["logs", "Logs", Logs, () => can(["logs.list"])], of("logs/exports")]],
  ["Usage", [["usage", "Usage", Usage, () => can(["analytics.view"])]]],
  ["Budgets", [of("budgets"), of("budgets/rates")]],
  ["Keys", [of("keys")]],
  ["Providers", [of("providers"), of("providers/integrations"), ["providers/catalog", "Catalog", Catalog, () => sees(kinds.find((k) => k.at === "providers")!)]]],
  ["Configs", [of("configs")]],
  ["Prompts", [of("prompts"), ["playground", "Playground", Playground, () => can(["prompts.list"])], of("prompts/partials"), of("prompts/collections"), of("prompts/labels")]],
  ["Guardrails", [of("guardrails"), ["guardrails/verdicts", "Verdicts", Verdicts, () => can(["analytics.view"])], of("guardrails/mcp"), of("guardrails/mcp-integrations"), of("guardrails/agents"), of("guardrails/agent-integrations")]],
  ["Organization", [of("organization"), of("organization/members"), of("organization/invitations"), of("organization/sso"), of("organization/domains"), ["organization/provisioning", "Provisioning", Provisioning, () => can(["organisation_settings.read"], "admin") && ofOrganisation()], ["organization/settings", "Settings", Settings, () => can(["organisation_settings.read"], "admin") && ofOrganisation()], ["organization/audit", "Audit log", Audit, () => can(["audit_logs.list"], "admin") && ofOrganisation()], of("organization/secrets"), of("organization/deployments"), of("organization/webhooks")]],
];

function SignIn({ done, ended }: { done: (s: Session) => void; ended: boolean }) {
  const [wrong, say] = useState(ended ? "The session has ended. Sign in again." : ""), [busy, work] = useState(false), [made, show] = useState<Session>(), [other, failed] = useState<Failure>();
  const begin = async (body: any, field: HTMLInputElement) => {
    work(true); failed(undefined); say("");
    try {
      const s: Session = await call("/session", {}, { method: "POST", body });
      field.value = "";
      if (s.api_keys?.length) show(s); else done(s);
    } catch (err) {
      const f = failureOf(err);
      if (f.status === 401) say("This API key is not valid. Check that it is complete and has not expired.");
      else if (f.status >= 500 || f.status === 0) failed(f);
      else say(f.message);
    }
    work(false);
  };
  const byKey = (e: any) => {
    e.preventDefault();
    const field = e.target.elements.key as HTMLInputElement, typed = field.value.trim();
    if (!typed) return say("Enter an API key.");
    begin({ api_key: typed }, field);
  };
  const byInvitation = (e: any) => {
    e.preventDefault();
    const field = e.target.elements.invitation as HTMLInputElement;
    begin({ invitation: field.value.trim().replace(/^.*[?&]token=/, "").replace(/&.*$/, ""), first_name: e.target.elements.first.value.trim() || undefined }, field);
  };
  const bySSO = (e: any) => {
    e.preventDefault();
    location.assign("/v1/auth/login?" + new URLSearchParams({ email: e.target.elements.email.value.trim(), return_to: location.pathname + location.search }));
  };
  if (made) return <main class="signin"><h1>Welcome</h1><Shown name="Your API key" secret={made.api_keys![0].key} done={() => done(made)} /></main>;
  return <main class="signin"><div class="card"><p class="brand"><Mark /> AI gateway</p><h1>Sign in to the AI gateway</h1>
    <form onSubmit={byKey}><label for="key">API key</label><input id="key" name="key" type="password" autocomplete="off" spellcheck={false} aria-describedby="wrong" autofocus />
      <p id="wrong" role="alert">{wrong}</p><button class="main" disabled={busy}>{busy ? "Signing in…" : "Sign in"}</button></form>{other && <ErrorView failure={other} />}
    <details><summary>Single sign-on</summary><form onSubmit={bySSO}><label for="email">Work email</label><input id="email" name="email" type="email" required autocomplete="email" /><button>Continue with single sign-on</button></form></details>
    <details><summary>Invitation</summary><form onSubmit={byInvitation}><label for="invitation">Link or token of the invitation</label><input id="invitation" name="invitation" type="password" required autocomplete="off" /><label for="first">First name</label><input id="first" name="first" autocomplete="given-name" /><button>Accept and sign in</button></form></details>
    <p class="quiet">The key opens a session of at most 12 hours. It is not stored in this browser. On a new installation, <code>go run ./local</code> prints an admin key once.</p></div></main>;
}

// addressOf is where something with an id is shown: ids of logs and slugs tell their kind,
// and any other id is taken for that of a trace.
function addressOf(id: string): string {
  const kind = ({ pc: "configs", pp: "prompts", pg: "guardrails" } as Record<string, string>)[id.split("-")[0]];
  if (kind && id.includes("-")) return "/console/" + kind + "/" + encodeURIComponent(id);
  return /^0[0-9A-Z]+$/.test(id) ? "/console/logs/" + id : "/console/logs?range=30d&trace_id=" + encodeURIComponent(id);
}

const Mark = () => <svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true"><path d="M3 10h4m6 0h4M7 4v12M13 4v12" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" /></svg>;

function pageOf(path: string): [string, any, Page | undefined, Page[]] {
  const rest = path.replace(/^\/console\/?/, "").replace(/\/$/, "");
  let name = "", found: Page | undefined, tabs: Page[] = [], most = -1;
  for (const [section, pages] of sections) for (const p of pages) {
    if ((rest === p[0] || p[0] !== "" && rest.startsWith(p[0] + "/")) && p[0].length > most) { name = section; found = p; tabs = pages; most = p[0].length; }
  }
  if (!found) return ["Not found", null, undefined, []];
  const [at, title, Show, allowed] = found;
  if (!allowed()) return [title, <Denied />, found, tabs];
  if (rest === at) return [title, <Show />, found, tabs];
  let id = rest.slice(at.length + 1);
  try { id = decodeURIComponent(id); } catch { /* shown as it is */ }
  if (at === "logs") return ["Request", <Request id={id} key={id} />, found, []];
  const k = kindOf(at);
  if (!k || k.at !== at) return ["Not found", null, undefined, []];
  return id === "new" ? ["Create", <New k={k} key={k.at} />, found, []] : [k.tab, <Item k={k} id={id} key={k.at + id} />, found, []];
}

function Denied() {
  return <><h1>You may not see this page</h1><p>Your role or key does not include it. Ask an admin for a role or a key that does.</p><p><Link to="/console/">Go to the overview</Link></p></>;
}

function App() {
  const [, moved] = useState(0), [menu, open] = useState(false);
  const [state, set] = useState<"in" | "out" | "ended" | "asking">("asking"), [failure, fail] = useState<Failure>(), [refused, refuse] = useState<Failure>();
  const ask = () => { fail(undefined); call("/session").then((s) => { setSession(s); set(signedIn() ? "in" : "out"); }, (e) => fail(failureOf(e))); };
  useEffect(() => {
    let n = 0;
    const move = () => { moved(++n); open(false); }, end = () => { if (!signedIn()) return; setSession(null); set("ended"); };
    addEventListener("console:address", move);
    addEventListener("popstate", move);
    addEventListener("console:ended", end);
    ask();
    const keys = (e: KeyboardEvent) => {
      if (e.key === "Escape") open(false);
      if (e.key !== "/" || e.ctrlKey || e.metaKey || /INPUT|SELECT|TEXTAREA/.test((e.target as Element).tagName)) return;
      e.preventDefault();
      document.getElementById("find")?.focus();
    };
    addEventListener("keydown", keys);
    return () => { removeEventListener("console:address", move); removeEventListener("popstate", move); removeEventListener("console:ended", end); removeEventListener("keydown", keys); };
  }, []);
  const [name, shown, page, tabs] = state === "in" ? pageOf(location.pathname) : ["", null, undefined, []] as any;
  useEffect(() => { document.title = (state === "in" ? name : "Sign in") + " · AI gateway"; });
  if (failure) return <main class="signin"><h1>The console cannot start</h1><ErrorView failure={failure} again={ask} /></main>;
  if (state === "asking") return <p class="loading" role="status">Loading…</p>;
  if (state !== "in") return <SignIn ended={state === "ended"} done={(s) => { setSession(s); set("in"); }} />;
  const out = async () => {
    refuse(undefined);
    try {
      const r = await call("/session", {}, { method: "DELETE" });
      if (/^https?:/.test(r.logout_url ?? "")) location.assign(r.logout_url);
    } catch (e) {
      if (failureOf(e).status !== 401) return refuse(failureOf(e)); // the session is still open
    }
    setSession(null); set("out");
  };
  const enter = async (id: string) => {
    refuse(undefined);
    setQuery("workspace", id, false);
    if (all) return;
    try {
      const s = await call("/session", { workspace_id: id });
      if (workspace() === id) { setSession(s); moved(-1); }
    } catch (e) { refuse(failureOf(e)); }
  };
  const visible = sections.map(([title, pages]) => [title, pages.filter((p) => p[3]())] as const).filter(([, pages]) => pages.length > 0);
  const section = visible.find(([, pages]) => pages.some((p) => p === page))?.[0];
  const rooms = who().workspaces, all = ofOrganisation();
  const seen = tabs.filter((p: Page) => p[3]());
  return <div class="shell"><a class="skip" href="#content">Skip to content</a>
    <div class="bar" role="banner"><Link class="brand" to="/console/"><Mark /> AI gateway</Link><button type="button" class="menu" aria-expanded={menu} aria-controls="side" onClick={() => open(!menu)}>Menu</button></div>
    <aside aria-label="Navigation" class={"side" + (menu ? " open" : "")} id="side">
      {rooms.length > 0 && <label class="rooms">Workspace <select value={workspace() || (all ? "" : room())} onChange={(e: any) => enter(e.target.value)}>{all && <option value="">All workspaces</option>}{rooms.map((w) => <option value={w.id}>{w.name}</option>)}</select></label>}
      <nav aria-label="Pages">{visible.map(([title, pages]) => <Link to={"/console/" + pages[0][0]} aria-current={title === section ? "page" : undefined}>{title}</Link>)}<a href="/v1/docs">API reference</a></nav>
      {can(["logs.list"]) && <form role="search" onSubmit={(e: any) => { e.preventDefault(); const id = e.target.elements.find.value.trim(); if (id) go(here(addressOf(id))); }}><label for="find">Find by id</label><input id="find" name="find" placeholder="Press / to search" /></form>}
      <p class="who">{who().type === "session" ? who().role : who().type.replaceAll("-", " ").replace("organisation", "organization") + " key"}<button type="button" onClick={out}>Sign out</button></p></aside>
    <main id="content" tabIndex={-1}><Tabs at={page?.[0] ?? ""} tabs={seen.map((p: Page) => [p[0], p[1]])} />{refused && <ErrorView failure={refused} />}<Boundary key={location.pathname}>{shown ?? <><h1>There is no such page</h1><p><Link to="/console/">Go to the overview</Link></p></>}</Boundary>
      <footer>{who().organisation_id && <>Organization {who().organisation_id}. </>}Times are in {Intl.DateTimeFormat("en-US").resolvedOptions().timeZone}.</footer></main></div>;
}

render(<App />, document.getElementById("root")!);
