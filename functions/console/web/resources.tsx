// Pages of the resources that kinds.tsx describes.
import { useState } from "preact/hooks";
import { address, call, can, ofOrganisation, room, roomName } from "./api";
import { Form } from "./form";
import { factsOf, Kind, kinds, place, scopesOf } from "./kinds";
import { count, since } from "./format";
import { Remove, RecentUse } from "./remove";
import { Badge, Confirm, Copy, Facts, go, Head, here, Link, setQuery, Shown, State, Table, Text, useCalls } from "./ui";

export const sees = (k: Kind) => can(scopesOf(k, "list"), k.role) && (k.where !== "organisation" || k.at === "organization" || ofOrganisation());
const may = (k: Kind, action: string) => !k.without?.includes(action) && can(scopesOf(k, action), k.writeRole) && (k.where !== "organisation" || ofOrganisation());
const to = (k: Kind, row: any) => "/console/" + k.at + "/" + encodeURIComponent(k.id(row));

export function Tabs({ tabs, at }: { tabs: [string, string][]; at: string }) {
  if (tabs.length < 2) return null;
  return <div class="tabs" role="group" aria-label="Sections">{tabs.map(([path, name]) => <Link to={"/console/" + path} aria-current={path === at ? "page" : undefined}>{name}</Link>)}</div>;
}

function Where({ k }: { k: Kind }) {
  return k.where === "workspace" && room() ? <span class="quiet">in {roomName(room())}</span> : null;
}

const pageSize = 50;

export function List({ k }: { k: Kind }) {
  const cursor = new URLSearchParams(location.search).get("cursor") ?? "";
  const got = useCalls("list " + k.at + JSON.stringify(place(k)) + cursor, async (s) => {
    const list = call(k.path, { ...place(k), page_size: String(pageSize), current_page: cursor }, { signal: s }).catch((e) => { if (e.status === 400 && /page/.test(e.field)) return call(k.path, place(k), { signal: s }); throw e; });
    const [answer, add] = await Promise.all([list, k.beside?.(s)]);
    if (add) answer.data.forEach(add);
    return answer;
  });
  return <><Head title={k.question}><Where k={k} />{may(k, "create") && <Link class="button main" to={"/console/" + k.at + "/new"}>{"Create " + article(k.one)}</Link>}</Head>
    <State of={got}>{(v) => v.data.length === 0 ? cursor ? <p class="empty">There is nothing on this page. <Link to={"/console/" + k.at}>Go to the first page</Link></p> : <div class="empty"><p>{k.empty}</p>{may(k, "create") && <p><Link to={"/console/" + k.at + "/new"}>{"Create " + article(k.one)}</Link></p>}</div>
      : <><Table label={k.tab} rows={v.data} columns={k.columns} /><p class="row">{cursor && <button type="button" onClick={() => history.back()}>Previous page</button>}<span class="quiet">{count(v.total ?? v.data.length)} in all</span>{v.data.length === pageSize && (Number(cursor) + 1) * pageSize < v.total && <button type="button" onClick={() => setQuery("cursor", String(Number(cursor) + 1))}>Next page</button>}</p></>}</State></>;
}

export function New({ k }: { k: Kind }) {
  const [made, show] = useState<{ secret?: string; name?: string; id: string }>();
  const back = () => go(here("/console/" + k.at));
  const send = async (body: any) => {
    const [path, content] = k.create ? k.create(body) : [k.path, k.where === "organisation" || k.where === "either" && ofOrganisation() && k.at.startsWith("organization") ? body : { workspace_id: room(), ...body }];
    const answer = await call(path, {}, { method: "POST", body: content });
    const once = k.made?.(answer), row = answer.data ?? answer;
    if (once?.secret) show({ ...once, id: "" });
    else go(here(row.slug || row.id ? to(k, row) : "/console/" + k.at));
  };
  if (made) return <><Head title={"The " + k.one + " was created"} /><Shown name={made.name!} secret={made.secret!} done={back} /></>;
  return <><Head title={"Create " + article(k.one)}><Where k={k} /></Head><Form fields={k.fields} send={send} label="Create" cancel={back} /></>;
}

const article = (word: string) => (/^(API|MCP|[aeioAEIO]|usage limit$)/.test(word) && word !== "usage limit" ? "an " : "a ") + word;

export function Item({ k, id }: { k: Kind; id: string }) {
  const [editing, edit] = useState(false), [raw, showRaw] = useState(false);
  const path = k.path + "/" + encodeURIComponent(id);
  const got = useCalls("item " + k.at + id + JSON.stringify(place(k)), async (s) => { const v = await call(path, place(k), { signal: s }); return k.unwrap ? k.unwrap(v) : v; });
  return <><p class="crumb"><Link to={"/console/" + k.at}>{k.tab}</Link></p><State of={got}>{(row) => {
    const Detail = k.detail;
    return <><Head title={nameOf(row)}><span class="row">
      {may(k, "update") && !editing && <button type="button" onClick={() => edit(true)}>Edit</button>}
      {k.at === "organization/invitations" && can(["organisation_users.update"], "admin") && <Resend path={path} />}
      {may(k, "delete") && <Remove label={k.at === "keys" ? "Revoke" : "Delete"} name={nameOf(row)} path={path} params={place(k)} body={k.remove?.(row)} done={() => go(here("/console/" + k.at))}>{k.at === "keys" && <><p>Requests with this key are rejected within 2 seconds, and sessions that it opened end.</p><h3>Used in the last 24 hours</h3><RecentUse id={row.id} /></>}</Remove>}</span></Head>
      {editing ? <Form fields={k.fields} of={row} label="Save" cancel={() => edit(false)} send={async (body) => { await call(path, {}, { method: "PUT", body: { ...place(k), ...(k.change?.(body) ?? body) } }); edit(false); got.again(); }} />
        : <><p class="slug">{row.status && <Badge text={row.status} />}<code>{row.slug ?? row.id}</code>{row.last_updated_at && <span title={row.last_updated_at}>changed {since(row.last_updated_at)}</span>}</p>
          {Detail && <Detail row={row} again={got.again} key={row.version_id ?? row.prompt_version_id} />}
          <details class="all" open={!Detail}><summary>All fields</summary><Facts of={factsOf(row)} /></details><p class="row"><button type="button" aria-expanded={raw} onClick={() => showRaw(!raw)}>{raw ? "Hide JSON" : "Show JSON"}</button><Copy label="Copy as curl" text={`curl "${location.origin}${address(path, place(k))}" -H "x-gateway-api-key: $GATEWAY_ADMIN_KEY"`} /></p>{raw && <Text label="Resource as JSON" value={row} />}</>}</>;
  }}</State></>;
}

const nameOf = (row: any) => row.name || row.email || row.domain || row.description || row.id;

function Resend({ path }: { path: string }) {
  const [link, show] = useState("");
  return <>{link ? <Copy text={link} label="Copy the new link" /> : <Confirm label="Send again" title="Send the invitation again?" tone="plain" action={async () => show((await call(path + "/resend", {}, { method: "POST" })).inviteLink)}><p>The former link becomes invalid.</p></Confirm>}</>;
}

export const kindOf = (path: string) => kinds.filter((k) => path === k.at || path.startsWith(k.at + "/")).sort((a, b) => b.at.length - a.at.length)[0];
