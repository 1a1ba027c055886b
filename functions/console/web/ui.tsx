import { Component } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { Failure, now, workspace } from "./api";
import { json, lines, maxShown } from "./format";

// go shows another address of the console without loading the page again.
export function go(to: string, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", to);
  dispatchEvent(new Event("console:address"));
  if (!replace) scrollTo(0, 0);
}

// here adds the chosen workspace to an address of the console.
export function here(to: string): string {
  const ws = workspace();
  if (!ws || /[?&]workspace=/.test(to)) return to;
  return to + (to.includes("?") ? "&" : "?") + "workspace=" + encodeURIComponent(ws);
}

export function setQuery(name: string, value: string, replace = name !== "cursor") {
  const q = new URLSearchParams(location.search);
  if (value) q.set(name, value); else q.delete(name);
  if (name !== "cursor") q.delete("cursor");
  go(location.pathname + (q.size ? "?" + q : ""), replace);
}

export function Link({ to, children, ...rest }: any) {
  const href = here(to);
  return <a href={href} {...rest} onClick={(e: MouseEvent) => {
    if (e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    go(href);
  }}>{children}</a>;
}

export type Loaded<T> = { value?: T; failure?: Failure; again: () => void };

export const failureOf = (e: unknown) => e instanceof Failure ? e : e instanceof SyntaxError ? new Failure(400, "json", "The text is not JSON: " + e.message, "", "") : new Failure(-1, "console", String(e), "", "");

// Boundary shows an error in place of a page that cannot be drawn.
export class Boundary extends Component<{ children?: any }, { failure?: Failure }> {
  state: { failure?: Failure } = {};
  static getDerivedStateFromError(e: unknown) { return { failure: failureOf(e) }; }
  render({ children }: any) { return this.state.failure ? <ErrorView failure={this.state.failure} again={() => this.setState({ failure: undefined })} /> : children; }
}

// useCalls makes the calls of a page together and again when their names change. While it
// loads again, the last value of the same name stays.
export function useCalls<T>(name: string, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, set] = useState<{ name: string; value?: T; failure?: Failure }>({ name: "" });
  const [turn, next] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    set((was) => was.name === name && !was.failure ? was : { name });
    load(stop.signal).then(
      (value) => { if (!stop.signal.aborted) set({ name, value }); },
      (e) => { if (!stop.signal.aborted) set({ name, failure: failureOf(e) }); });
    return () => stop.abort();
  }, [name, turn]);
  return { ...(state.name === name ? state : {}), again: () => { if (state.failure) set({ name: "" }); next(turn + 1); } };
}

const advice: Record<number, string> = {
  [-1]: "This is a fault of the console. Load the page again.",
  0: "Check that the gateway runs, then try again.", 400: "Correct the field that is named, then try again.",
  401: "Sign in again.", 403: "Ask an admin for a role or a key that allows this.", 404: "It may have been removed, or kept for a shorter time. Check the id.",
  409: "It conflicts with what is stored. Load the page again and compare.", 412: "A limit does not allow it. Raise the limit, or wait for its reset.", 429: "Wait a moment, then try again.",
};

export function ErrorView({ failure, again }: { failure: Failure; again?: () => void }) {
  return <div class="error" role="alert">
    <strong>{failure.message}</strong>
    {failure.more.length > 1 && <ul>{failure.more.map((m) => <li>{m}</li>)}</ul>}
    <p>{advice[failure.status] ?? "Try again. If it happens again, give the trace id to whoever runs the gateway."}</p>
    <dl><dt>Code</dt><dd>{failure.code}</dd>{failure.field && <><dt>Field</dt><dd>{failure.field}</dd></>}{failure.trace && <><dt>Trace id</dt><dd>{failure.trace}</dd></>}</dl>
    {again && <button type="button" onClick={again}>Try again</button>}
  </div>;
}

export function State<T>({ of, children }: { of: Loaded<T>; children: (v: T) => any }) {
  if (of.failure) return <ErrorView failure={of.failure} again={of.again} />;
  if (of.value === undefined) return <div class="loading" role="status"><span class="quiet">Loading…</span><i /><i /><i /></div>;
  return children(of.value);
}

// lazy is a component of a part of the console that is loaded when it is first shown.
export function lazy(load: () => Promise<any>, name: string) {
  let Part: any;
  return (props?: any) => {
    const [, loaded] = useState(false), [failure, fail] = useState<Failure>();
    useEffect(() => {
      let gone = false;
      if (!Part) load().then((m) => { Part = m[name]; if (!gone) loaded(true); }, () => { if (!gone) fail(new Failure(0, "changed", "This part of the console cannot be loaded.", "", "")); });
      return () => { gone = true; };
    }, []);
    return Part ? <Part {...props} /> : <State of={{ failure, again: () => location.reload() }}>{() => null}</State>;
  };
}

export function Copy({ text, label }: { text: string; label: string }) {
  const [done, set] = useState("");
  const copy = async () => {
    try { await navigator.clipboard.writeText(text); set("Copied"); } catch { set("The browser does not allow copying"); } // such as without https
    setTimeout(() => set(""), 2000);
  };
  return <button type="button" onClick={copy}><span role="status">{done || label}</span></button>;
}

// Text shows a value of any size as text.
export function Text({ value, label }: { value: unknown; label: string }) {
  const [all, showAll] = useState(false);
  const text = json(value);
  return <><pre tabIndex={0} aria-label={label}>{all ? text : text.slice(0, maxShown)}</pre>
    {!all && text.length > maxShown && <button type="button" onClick={() => showAll(true)}>Load all {Math.round(text.length / 1024)} kB</button>}</>;
}

// Diff shows what changes from one text to another.
export function Diff({ before, after, label }: { before: string; after: string; label: string }) {
  if (before === after) return <p class="quiet">There is no difference.</p>;
  return <pre class="diff" tabIndex={0} aria-label={label}>{lines(before, after).map(([sign, text]) => sign === " " ? "  " + text + "\n" : sign === "-" ? <del>{"- " + text + "\n"}</del> : <ins>{"+ " + text + "\n"}</ins>)}</pre>;
}

const tones: Record<string, string> = { active: "good", accepted: "good", healthy: "good", success: "good", synced: "good", pending: "wait", exhausted: "bad", expired: "bad", failed: "bad", archived: "off", cancelled: "off", inactive: "off", paused: "off" };
const marks: Record<string, string> = { good: "●", wait: "◐", bad: "▲", off: "○" };

// Badge shows a state by its text and a shape, not by its color alone.
export function Badge({ text, tone }: { text: string; tone?: string }) {
  const kind = tone ?? tones[text] ?? "off";
  return <span class={"badge " + kind}><span aria-hidden="true">{marks[kind]}</span> {text}</span>;
}

export function Status({ code }: { code: number }) {
  const good = code >= 200 && code < 300 || code === 101;
  return <span class={"badge " + (good ? "good" : "bad")}><span aria-hidden="true">{good ? "●" : "▲"}</span> {code}</span>;
}

// Table shows rows. A column is its name, what a cell shows, and "n" for numbers or "w" for
// long texts. A column without a name holds buttons.
export type Column<T> = [string, (row: T) => any, string?];
export function Table<T>({ rows, columns, label }: { rows: T[]; columns: Column<T>[]; label: string }) {
  return <div class="scroll" tabIndex={0} role="region" aria-label={label}><table>
    <thead><tr>{columns.map(([name, , kind]) => name ? <th class={kind} scope="col">{name}</th> : <td class="head"><span class="unseen">Actions</span></td>)}</tr></thead>
    <tbody>{rows.map((r) => <tr>{columns.map(([name, cell, kind]) => <td class={kind ?? (name ? undefined : "n")}>{cell(r)}</td>)}</tr>)}</tbody></table></div>;
}

export type Fact = [string, any];
export function Facts({ of }: { of: Fact[] }) {
  return <dl class="facts">{of.filter(([, v]) => v != null && v !== "").map(([name, v]) => <div><dt>{name}</dt><dd>{v}</dd></div>)}</dl>;
}

export function Head({ title, children }: { title: string; children?: any }) {
  return <header><h1>{title}</h1>{children}</header>;
}

// Confirm asks in a dialog before something is done. It closes with Escape, and the focus
// returns to the button.
export function Confirm({ label, title, action, children, tone = "danger", blocked = false }: { label: string; title: string; action: () => Promise<any>; children?: any; tone?: string; blocked?: boolean }) {
  const at = useRef<HTMLDialogElement>(null);
  const [open, show] = useState(false), [busy, work] = useState(false), [failure, fail] = useState<Failure>();
  useLayoutEffect(() => { if (open) at.current?.showModal(); }, [open]);
  const run = async (e: any) => {
    e.preventDefault();
    work(true); fail(undefined);
    try { await action(); at.current?.close(); } catch (x) { fail(failureOf(x)); }
    work(false);
  };
  return <><button type="button" class={tone} onClick={() => { fail(undefined); show(true); }}>{label}</button>
    {open && <dialog ref={at} aria-label={title} onClose={() => show(false)}><form onSubmit={run}><h2>{title}</h2>{children}
      {failure && <ErrorView failure={failure} />}
      <p class="row"><button class={tone === "danger" ? "main danger" : "main"} disabled={busy || blocked}>{label}</button><button type="button" onClick={() => at.current?.close()}>Cancel</button></p></form></dialog>}</>;
}

// Shown shows a secret once. It is kept in the memory of the page alone.
export function Shown({ name, secret, done }: { name: string; secret: string; done: () => void }) {
  return <div class="secret" role="status"><strong>{name}</strong><p>Copy it now: it is shown once and cannot be read again.</p>
    <p class="row"><code tabIndex={0}>{secret}</code></p><p class="row"><Copy text={secret} label="Copy" /><button type="button" onClick={done}>I have stored it</button></p></div>;
}

export const ranges: Record<string, [string, number]> = { "1h": ["Last hour", 1], "24h": ["Last 24 hours", 24], "7d": ["Last 7 days", 168], "30d": ["Last 30 days", 720] };
export const rangeOf = (q: URLSearchParams) => ranges[q.get("range") ?? ""] ? q.get("range")! : "24h";

export function between(range: string) {
  const to = new Date(now()), from = new Date(to.getTime() - ranges[range][1] * 3600_000);
  return { time_of_generation_min: from.toISOString(), time_of_generation_max: to.toISOString() };
}

export function Range({ value }: { value: string }) {
  return <label>Time <select value={value} onChange={(e: any) => setQuery("range", e.target.value)}>
    {Object.entries(ranges).map(([k, [text]]) => <option value={k}>{text}</option>)}
  </select></label>;
}

// Plot draws points over time. The table below the plot has the same values.
export function Plot({ title, points, format }: { title: string; points: [string, number][]; format: (n: number) => string }) {
  const at = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const el = at.current!;
    const draw = () => {
      const css = getComputedStyle(el);
      return new uPlot({
        width: Math.max(200, el.clientWidth), height: 164, legend: { show: false }, cursor: { show: false },
        axes: [{ stroke: css.color, grid: { show: false }, ticks: { show: false }, size: 40, font: "11px system-ui, sans-serif" }, { stroke: css.color, size: 68, ticks: { show: false }, font: "11px system-ui, sans-serif", grid: { stroke: css.borderTopColor, width: 1 }, values: (_: any, all: number[]) => all.map(format) }],
        scales: { y: { range: (_u: any, _min: number, max: number) => [0, max > 0 ? max * 1.1 : 1] } },
        series: [{}, { stroke: css.accentColor, fill: css.outlineColor, width: 1.75, points: { show: false } }],
      } as any, [points.map((p) => Date.parse(p[0]) / 1000), points.map((p) => p[1])] as any, el);
    };
    let plot = draw();
    const sized = new ResizeObserver(() => plot.setSize({ width: Math.max(200, el.clientWidth), height: 164 }));
    sized.observe(el);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const redraw = () => { plot.destroy(); plot = draw(); };
    dark.addEventListener("change", redraw);
    return () => { dark.removeEventListener("change", redraw); sized.disconnect(); plot.destroy(); };
  }, [points]);
  const most = points.reduce((a, p) => Math.max(a, p[1]), 0);
  return <figure><figcaption><strong>{title}</strong> <span>{points.length} points, at most {format(most)}</span></figcaption><div class="plot" ref={at} aria-hidden="true" />
    <details><summary>Values</summary><div class="scroll" tabIndex={0} role="region" aria-label={title + " values"}><table><thead><tr><th scope="col">Time</th><th class="n" scope="col">{title}</th></tr></thead>
      <tbody>{points.map((p) => <tr><td>{p[0]}</td><td class="n">{format(p[1])}</td></tr>)}</tbody></table></div></details></figure>;
}
