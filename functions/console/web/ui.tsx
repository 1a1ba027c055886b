import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { Failure } from "./api";
import { json, maxShown } from "./format";

// go shows another address of the console without loading the page again.
export function go(to: string, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", to);
  dispatchEvent(new Event("console:address"));
  if (!replace) scrollTo(0, 0);
}

export function setQuery(name: string, value: string) {
  const q = new URLSearchParams(location.search);
  if (value) q.set(name, value); else q.delete(name);
  if (name !== "cursor") q.delete("cursor");
  go(location.pathname + (q.size ? "?" + q : ""), name !== "cursor");
}

export function Link({ to, children, ...rest }: any) {
  return <a href={to} {...rest} onClick={(e: MouseEvent) => {
    if (e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    go(to);
  }}>{children}</a>;
}

type Loaded<T> = { value?: T; failure?: Failure; again: () => void };

// useCalls makes the calls of a page together and again when their names change.
export function useCalls<T>(name: string, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, set] = useState<{ name: string; value?: T; failure?: Failure }>({ name: "" });
  const [turn, next] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    set({ name });
    load(stop.signal).then(
      (value) => { if (!stop.signal.aborted) set({ name, value }); },
      (e) => {
        if (stop.signal.aborted) return;
        const failure = e instanceof Failure ? e : new Failure(0, "console", String(e), "", "");
        if (failure.status === 401) dispatchEvent(new Event("console:ended"));
        set({ name, failure });
      });
    return () => stop.abort();
  }, [name, turn]);
  return { ...(state.name === name ? state : {}), again: () => next(turn + 1) };
}

const advice: Record<number, string> = {
  0: "Check that the gateway runs, then try again.", 400: "Change the filter that is named, then try again.",
  401: "Sign in again.", 403: "Ask an admin for a role or a key that may see this.", 404: "It may have been removed, or kept for a shorter time. Check the id.",
  429: "Wait a moment, then try again.",
};

export function ErrorView({ failure, again }: { failure: Failure; again: () => void }) {
  return <div class="error" role="alert">
    <strong>{failure.message}</strong>
    <p>{advice[failure.status] ?? "Try again. If it happens again, give the trace id to whoever runs the gateway."}</p>
    <dl><dt>Code</dt><dd>{failure.code}</dd>{failure.field && <><dt>Field</dt><dd>{failure.field}</dd></>}{failure.trace && <><dt>Trace id</dt><dd>{failure.trace}</dd></>}</dl>
    <button type="button" onClick={again}>Try again</button>
  </div>;
}

export function State<T>({ of, children }: { of: Loaded<T>; children: (v: T) => any }) {
  if (of.failure) return <ErrorView failure={of.failure} again={of.again} />;
  if (of.value === undefined) return <p class="loading" role="status">Loading…</p>;
  return children(of.value);
}

export function Copy({ text, label }: { text: string; label: string }) {
  const [done, set] = useState(false);
  return <button type="button" onClick={() => navigator.clipboard.writeText(text).then(() => { set(true); setTimeout(() => set(false), 2000); })}>{done ? "Copied" : label}</button>;
}

// Text shows a value of any size as text.
export function Text({ value, label }: { value: unknown; label: string }) {
  const [all, showAll] = useState(false);
  const text = json(value);
  return <><pre tabIndex={0} aria-label={label}>{all ? text : text.slice(0, maxShown)}</pre>
    {!all && text.length > maxShown && <button type="button" onClick={() => showAll(true)}>Load all {Math.round(text.length / 1024)} kB</button>}</>;
}

export const ranges: Record<string, [string, number]> = { "1h": ["Last hour", 1], "24h": ["Last 24 hours", 24], "7d": ["Last 7 days", 168], "30d": ["Last 30 days", 720] };
export const rangeOf = (q: URLSearchParams) => ranges[q.get("range") ?? ""] ? q.get("range")! : "24h";

export function between(range: string) {
  const to = new Date(), from = new Date(to.getTime() - ranges[range][1] * 3600_000);
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
    const css = getComputedStyle(el);
    const draw = () => new uPlot({
      width: Math.max(200, el.clientWidth), height: 160, legend: { show: false }, cursor: { show: false },
      axes: [{ stroke: css.color, grid: { show: false }, size: 30 }, { stroke: css.color, size: 72, grid: { stroke: css.borderTopColor, width: 1 }, values: (_: any, all: number[]) => all.map(format) }],
      scales: { y: { range: (_u: any, _min: number, max: number) => [0, max > 0 ? max * 1.1 : 1] } },
      series: [{}, { stroke: css.accentColor, width: 1.5, points: { show: points.length < 40 } }],
    } as any, [points.map((p) => Date.parse(p[0]) / 1000), points.map((p) => p[1])] as any, el);
    let plot = draw();
    const sized = new ResizeObserver(() => plot.setSize({ width: Math.max(200, el.clientWidth), height: 160 }));
    sized.observe(el);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const redraw = () => { plot.destroy(); plot = draw(); };
    dark.addEventListener("change", redraw);
    return () => { dark.removeEventListener("change", redraw); sized.disconnect(); plot.destroy(); };
  }, [points]);
  const most = points.reduce((a, p) => Math.max(a, p[1]), 0);
  return <figure><figcaption>{title}: {points.length} points, at most {format(most)}</figcaption><div class="plot" ref={at} aria-hidden="true" />
    <details><summary>Values</summary><div class="scroll" tabIndex={0} role="region" aria-label={title + " values"}><table><thead><tr><th>Time</th><th class="n">{title}</th></tr></thead>
      <tbody>{points.map((p) => <tr><td>{p[0]}</td><td class="n">{format(p[1])}</td></tr>)}</tbody></table></div></details></figure>;
}
