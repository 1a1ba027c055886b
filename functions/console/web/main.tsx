import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call, Failure, setCsrf, setKey, usesKey } from "./api";
import { Logs, Overview, Request, Usage } from "./pages";
import { go, Link } from "./ui";
import "uplot.css";
import "./style.css";

const pages: [string, string, () => any][] = [["/console/", "Overview", Overview], ["/console/logs", "Logs", Logs], ["/console/usage", "Usage", Usage]];

// sso marks a tab that went to an identity provider; it is no secret.
const sso = "gateway-sso";

function SignIn({ done }: { done: () => void }) {
  const [wrong, say] = useState("");
  const [busy, work] = useState(false);
  const submit = async (e: any) => {
    e.preventDefault();
    const field = e.target.elements.key as HTMLInputElement, typed = field.value.trim();
    if (!typed) return say("Enter an API key.");
    work(true);
    setKey(typed);
    try {
      await call("/logs", { page_size: "1" });
      field.value = "";
      done();
    } catch (err) {
      setKey("");
      const f = err as Failure;
      say(f.status === 401 ? "This API key is not valid. Check that it is complete and has not expired." : f.status === 403 ? "This API key may not read logs. Use one with the scope logs.list." : f.message);
    }
    work(false);
  };
  const bySSO = (e: any) => {
    e.preventDefault();
    sessionStorage.setItem(sso, "1");
    location.assign("/v1/auth/login?" + new URLSearchParams({ email: e.target.elements.email.value.trim(), return_to: location.pathname + location.search }));
  };
  return <main class="signin"><h1>Sign in to the AI gateway</h1>
    <form onSubmit={submit}><label for="key">API key</label><input id="key" name="key" type="password" autocomplete="off" spellcheck={false} aria-describedby="wrong" autofocus />
      <p id="wrong" role="alert">{wrong}</p><button class="main" disabled={busy}>{busy ? "Signing in…" : "Sign in"}</button></form>
    <p>The key stays in this tab's memory: after a reload you enter it again. On a new installation, <code>go run ./local</code> prints an admin key once.</p>
    <form onSubmit={bySSO}><label for="email">Work email, for single sign-on</label><input id="email" name="email" type="email" required autocomplete="email" /><button>Continue with single sign-on</button></form></main>;
}

function App() {
  const [, moved] = useState(0);
  const [state, set] = useState<"in" | "out" | "asking">(sessionStorage.getItem(sso) ? "asking" : "out");
  useEffect(() => {
    let n = 0;
    const move = () => moved(++n), end = () => { setKey(""); sessionStorage.removeItem(sso); set("out"); };
    addEventListener("console:address", move);
    addEventListener("popstate", move);
    addEventListener("console:ended", end);
    if (state === "asking") call("/auth/self").then((who) => { setCsrf(who.csrf_token ?? ""); set("in"); }, end);
    const keys = (e: KeyboardEvent) => {
      if (e.key !== "/" || /INPUT|SELECT|TEXTAREA/.test((e.target as Element).tagName)) return;
      e.preventDefault();
      document.getElementById("find")?.focus();
    };
    addEventListener("keydown", keys);
    return () => { removeEventListener("console:address", move); removeEventListener("popstate", move); removeEventListener("console:ended", end); removeEventListener("keydown", keys); };
  }, []);
  const path = location.pathname;
  const page = pages.find(([p]) => p === path);
  useEffect(() => { document.title = (state === "in" ? page?.[1] ?? (path.startsWith("/console/logs/") ? "Request" : "Not found") : "Sign in") + " · AI gateway"; });
  if (state === "asking") return <p class="loading" role="status">Loading…</p>;
  if (state === "out") return <SignIn done={() => set("in")} />;
  const out = async () => {
    try { if (!usesKey()) await call("/auth/logout", {}, "POST"); } finally { dispatchEvent(new Event("console:ended")); }
  };
  let shown;
  if (page) { const Page = page[2]; shown = <Page />; }
  else if (path.startsWith("/console/logs/")) { let id = path.slice(14); try { id = decodeURIComponent(id); } catch { /* shown as it is */ } shown = <Request id={id} key={id} />; }
  else shown = <><h1>There is no such page</h1><p><Link to="/console/">Go to the overview</Link></p></>;
  return <><a class="skip" href="#content">Skip to content</a><div class="bar"><strong>AI gateway</strong>
    <nav aria-label="Pages">{pages.map(([to, name]) => <Link to={to} aria-current={to === path || to === "/console/logs" && path.startsWith("/console/logs/") ? "page" : undefined}>{name}</Link>)}<a href="/v1/docs">API reference</a></nav>
    <form role="search" onSubmit={(e: any) => { e.preventDefault(); const id = e.target.elements.find.value.trim(); if (id) go("/console/logs/" + encodeURIComponent(id)); }}><label for="find">Log id</label><input id="find" name="find" placeholder="Press / to search" /></form>
    <button type="button" onClick={out}>Sign out</button></div><main id="content" tabIndex={-1}>{shown}<footer>Times are in {Intl.DateTimeFormat("en-US").resolvedOptions().timeZone}.</footer></main></>;
}

render(<App />, document.getElementById("root")!);
