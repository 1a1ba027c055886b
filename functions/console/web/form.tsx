import { useRef, useState } from "preact/hooks";
import { Failure } from "./api";
import { json } from "./format";
import { ErrorView, failureOf } from "./ui";

// Field describes one input. name is the member of the body; dots name members of members.
export type Field = {
  name: string; label: string; type?: "text" | "number" | "select" | "json" | "lines" | "check" | "date" | "secret" | "area";
  required?: boolean; options?: [string, string][]; help?: string; fixed?: boolean; start?: any; startOf?: () => any; when?: (values: Record<string, any>) => boolean; placeholder?: string;
};

const get = (o: any, name: string) => name.split(".").reduce((v, k) => v?.[k], o);
function put(o: any, name: string, v: any) {
  const path = name.split("."), last = path.pop()!;
  for (const k of path) o = o[k] ??= {};
  o[last] = v;
}

// text is the value of a field as its input holds it.
function text(f: Field, v: any): any {
  if (v == null) return f.type === "check" ? false : "";
  if (f.type === "json") return json(v);
  if (f.type === "lines") return Array.isArray(v) ? v.join("\n") : String(v);
  if (f.type === "date") return String(v).slice(0, 16);
  return f.type === "check" ? !!v : String(v);
}

// value is what a field sends; undefined leaves it out, null clears it.
function value(f: Field, v: any, had: boolean): any {
  if (f.type === "check") return v;
  if (v === "") return had ? null : undefined;
  if (f.type === "number") return Number(v);
  if (f.type === "json") {
    try { return JSON.parse(v); } catch (e) { throw new Failure(400, "json", f.label + ": " + (e as Error).message, f.name, ""); }
  }
  if (f.type === "lines") return v.split(/[\n,]/).map((s: string) => s.trim()).filter(Boolean);
  if (f.type === "date") return new Date(v + "Z").toISOString();
  return v;
}

// JSONText edits JSON with line numbers and says where it is broken.
export function JSONText({ id, value, change, rows = 12, name }: { id: string; value: string; change: (v: string) => void; rows?: number; name?: string }) {
  const gutter = useRef<HTMLPreElement>(null);
  let wrong = "";
  if (value.trim()) try { JSON.parse(value); } catch (e) { wrong = (e as Error).message; }
  const lines = value.split("\n").length;
  return <div class="editor"><pre ref={gutter} aria-hidden="true">{Array.from({ length: Math.min(lines, 5000) }, (_, i) => i + 1).join("\n")}</pre>
    <textarea id={id} name={name} rows={rows} spellcheck={false} value={value} aria-invalid={!!wrong} aria-describedby={id + "-wrong"} wrap="off"
      onScroll={(e: any) => { gutter.current!.scrollTop = e.target.scrollTop; }} onInput={(e: any) => change(e.target.value)} />
    <p id={id + "-wrong"} class="wrong" role="status">{wrong}</p></div>;
}

function Input({ f, v, change, first }: { f: Field; v: any; change: (v: any) => void; first: boolean }) {
  const id = "f-" + f.name, on = (e: any) => change(e.target.value), help = f.help ? id + "-help" : undefined;
  const common = { id, name: f.name, required: f.required, "aria-describedby": help, autofocus: first, placeholder: f.placeholder };
  const input = f.type === "select" ? <select {...common} value={v} onChange={on}>{!f.required && <option value="">–</option>}{f.options!.map(([k, t]) => <option value={k}>{t}</option>)}</select>
    : f.type === "json" ? <JSONText id={id} name={f.name} value={v} change={change} />
    : f.type === "lines" || f.type === "area" ? <textarea {...common} rows={f.type === "area" ? 5 : 4} value={v} onInput={on} />
    : f.type === "check" ? <input {...common} type="checkbox" checked={v} onChange={(e: any) => change(e.target.checked)} />
    : <input {...common} type={f.type === "number" ? "number" : f.type === "date" ? "datetime-local" : f.type === "secret" ? "password" : "text"} step={f.type === "number" ? "any" : undefined} autocomplete="off" value={v} onInput={on} />;
  return <div class={"field " + (f.type ?? "text")}><label for={id}>{f.label}{f.required && <span class="quiet"> required</span>}</label>{input}{f.help && <small id={help}>{f.help}</small>}</div>;
}

// Form edits an object. With of it sends what changed, else all that is filled in.
export function Form({ fields, of, send, label, cancel }: { fields: Field[]; of?: any; send: (body: any) => Promise<any>; label: string; cancel: () => void }) {
  const shown = fields.filter((f) => !(of && f.fixed));
  const begin = () => Object.fromEntries(shown.map((f) => [f.name, text(f, of ? get(of, f.name) : f.startOf ? f.startOf() : f.start)]));
  const [values, set] = useState<Record<string, any>>(begin);
  const [start] = useState(begin);
  const [failure, fail] = useState<Failure>(), [busy, work] = useState(false);
  const submit = async (e: any) => {
    e.preventDefault();
    work(true); fail(undefined);
    try {
      const body: any = {};
      for (const f of shown) {
        if (f.when && !f.when(values) || of && values[f.name] === start[f.name]) continue;
        const v = value(f, values[f.name], of && start[f.name] !== "");
        if (v !== undefined && !(f.type === "check" && !of && !v)) put(body, f.name, v);
      }
      if (of && Object.keys(body).length === 0) throw new Failure(400, "unchanged", "Nothing was changed.", "", "");
      await send(body);
    } catch (x) { fail(failureOf(x)); }
    work(false);
  };
  return <form class="form" onSubmit={submit}>{shown.filter((f) => !f.when || f.when(values)).map((f, i) => <Input f={f} v={values[f.name]} first={i === 0} change={(v) => set({ ...values, [f.name]: v })} />)}
    {failure && <ErrorView failure={failure} />}
    <p class="row"><button class="main" disabled={busy}>{busy ? "Saving…" : label}</button><button type="button" onClick={cancel}>Cancel</button></p></form>;
}
