// Deletions. Each shows what it affects before it is done.
import { useState } from "preact/hooks";
import { call, can } from "./api";
import { count, dollars, since } from "./format";
import { between, Confirm, State, Table, useCalls } from "./ui";

type Thing = { type: string; id: string; name: string };
type Plan = { blocked: string | null; used_by: Thing[]; deletes: Thing[]; changes: Thing[]; complete: boolean };
type Where = { path: string; params?: Record<string, string>; body?: any };

// Remove is the button of a deletion, and its dialog. It can be confirmed once the dialog
// shows what it affects.
export function Remove({ label = "Delete", name, done, children, ...at }: Where & { label?: string; name: string; done: () => void; children?: any }) {
  const [ready, allow] = useState(false);
  return <Confirm label={label} title={label + " “" + name + "”?"} blocked={!ready} action={async () => { await call(at.path, at.params, { method: "DELETE", body: at.body }); done(); }}>
    {children}<Effect {...at} allow={allow} /></Confirm>;
}

function Effect({ path, params, body, allow }: Where & { allow: (is: boolean) => void }) {
  const got = useCalls("effect " + path, async (signal) => {
    allow(false);
    const plan: Plan = (await call(path, { ...params, dry_run: "true" }, { method: "DELETE", body, signal })).dry_run;
    allow(plan.blocked === null);
    return plan;
  });
  const list = (title: string, of: Thing[]) => of.length > 0 && <><h3>{title}</h3><ul class="things">{of.slice(0, 50).map((x) => <li><span class="quiet">{x.type.replace(/[-_]/g, " ").replace(/^api ?key$/, "API key")}</span> {x.name || x.id}</li>)}</ul>{of.length > 50 && <p class="quiet">and {count(of.length - 50)} more</p>}</>;
  return <State of={got}>{(plan) => <div class="effect">{plan.blocked && <p class="wrong" role="alert">{plan.blocked[0].toUpperCase() + plan.blocked.slice(1)}.</p>}{list("Used by", plan.used_by)}{!plan.blocked && <>{plan.deletes.length > 1 && list("Deleted", plan.deletes)}{list("Changed", plan.changes)}</>}
    {plan.used_by.length + plan.changes.length === 0 && plan.deletes.length <= 1 && !plan.blocked && <p class="quiet">Nothing else uses it.</p>}{!plan.complete && <p class="quiet">There is more than this list shows.</p>}</div>}</State>;
}

// RecentUse shows which models a key called in the last 24 hours.
export function RecentUse({ id }: { id: string }) {
  const sees = can(["analytics.view"]);
  const used = useCalls("key use " + id, (s) => sees ? call("/analytics/groups/model", { ...between("24h"), api_key_ids: id, columns: "cost,error_count,last_seen" }, { signal: s }) : Promise.resolve({ data: [] }));
  return <State of={used}>{(u) => u.data.length === 0 ? <p class="quiet">{sees ? "No request used this key." : "You may not see its requests."}</p> : <Table label="Use of the key" rows={u.data} columns={[["Model", (r: any) => r.model], ["Requests", (r: any) => count(r.requests), "n"], ["Errors", (r: any) => count(r.error_count), "n"], ["Spend", (r: any) => dollars(r.cost / 100), "n"], ["Last", (r: any) => since(r.last_seen)]]} />}</State>;
}
