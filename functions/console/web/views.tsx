// Saved views of a page: names for the filters in its address.
import { useState } from "preact/hooks";
import { call, room } from "./api";
import { Remove } from "./remove";
import { Confirm, go, State, useCalls } from "./ui";

// shownQuery is the query of the address without the position in the list.
function shownQuery(): string {
  const q = new URLSearchParams(location.search);
  q.delete("cursor");
  q.sort();
  return q.toString();
}

const sorted = (query: string) => { const q = new URLSearchParams(query); q.sort(); return q.toString(); };

// Views chooses, saves and deletes views. On a page with many calls of its own they are
// loaded when they are asked for.
export function Views({ page, later }: { page: "logs" | "analytics"; later?: boolean }) {
  const [open, show] = useState(!later);
  return open ? <Choice page={page} /> : <button type="button" onClick={() => show(true)}>Saved views</button>;
}

function Choice({ page }: { page: "logs" | "analytics" }) {
  const got = useCalls("views " + page + room(), (s) => call("/views", { page, workspace_id: room(), page_size: "200" }, { signal: s }));
  const [name, rename] = useState("");
  const query = shownQuery();
  const save = async () => { await call("/views", {}, { method: "POST", body: { name: name.trim(), page, query, workspace_id: room() } }); rename(""); got.again(); };
  if (got.failure) return <State of={got}>{() => null}</State>;
  const views = (got.value?.data ?? []) as any[], used = views.find((v) => sorted(v.query) === query);
  return <div class="views" role="group" aria-label="Saved views">
    <label>View <select value={used?.id ?? ""} onChange={(e: any) => { const v = views.find((x) => x.id === e.target.value); go(location.pathname + (v?.query ? "?" + v.query : "")); }}>
      <option value="">{used || !query ? "All" : "Not saved"}</option>{views.map((v) => <option value={v.id}>{v.name}</option>)}</select></label>
    {used ? <Remove label="Delete view" name={used.name} path={"/views/" + used.id} params={{ workspace_id: used.workspace_id }} done={() => { got.again(); go(location.pathname); }} />
      : query && <Confirm label="Save view" title="Save this view" tone="plain" action={save}><p>Everyone who may read this page in the workspace sees it.</p><div class="field"><label for="view">Name</label><input id="view" required maxLength={100} autofocus value={name} onInput={(e: any) => rename(e.target.value)} /></div></Confirm>}</div>;
}
