// Calls of the public API. The session is a cookie that scripts cannot read; no key is
// stored here, in the browser's storage or in an address.
export type Session = {
  type: string; organisation_id: string | null; workspace_id: string | null; user_id: string | null; api_key_id: string | null;
  role: string | null; scopes: string[]; scopes_by_settings: string[]; workspaces: { id: string; slug: string; name: string }[]; csrf_token: string | null; expires_at: string | null;
  api_keys?: { id: string; workspace_id: string; key: string }[];
};

export class Failure extends Error {
  status: number; code: string; field: string; trace: string; more: string[];
  constructor(status: number, code: string, message: string, field: string, trace: string, more: string[] = []) {
    super(message);
    this.status = status; this.code = code; this.field = field; this.trace = trace; this.more = more;
  }
}

const nobody: Session = { type: "none", organisation_id: null, workspace_id: null, user_id: null, api_key_id: null, role: null, scopes: [], scopes_by_settings: [], workspaces: [], csrf_token: null, expires_at: null };
let session = nobody;

export const who = () => session;
export const signedIn = () => session.type !== "none";
export function setSession(s: Session | null) { session = s ?? nobody; }

const ranks = ["member", "manager", "admin", "owner"];

// can reports whether the caller may use one of the scopes with at least a role.
export function can(scopes: string[], role = ""): boolean {
  return scopes.some((s) => session.scopes.includes(s) && (!role || session.scopes_by_settings.includes(s) || ranks.indexOf(session.role ?? "") >= ranks.indexOf(role)));
}

// ofOrganisation reports whether the caller reaches the whole organization.
export const ofOrganisation = () => session.workspace_id === null && (session.type === "organisation-service" || session.role === "owner" || session.role === "admin");

// workspace is the one that the address names; "" is none.
export const workspace = () => new URLSearchParams(location.search).get("workspace") ?? "";

// room is the workspace in which pages act that need one.
export const room = () => workspace() || session.workspace_id || session.workspaces.find((w) => w.slug === "default")?.id || session.workspaces[0]?.id || "";

// inRoom are the parameters of calls about the requests of the chosen workspace, or of all.
export const inRoom = (): Record<string, string> => workspace() ? { workspace_slug: workspace() } : {};

export const roomName = (id: string) => session.workspaces.find((w) => w.id === id || w.slug === id)?.name ?? id;

type Params = Record<string, string | undefined>;

export function address(path: string, params: Params = {}): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) if (v) q.set(k, v);
  return "/v1" + path + (q.size ? "?" + q : "");
}

// now is the time of the gateway: the clock of this machine may be wrong.
let ahead = 0;
export const now = () => Date.now() + ahead;

type Options = { method?: string; body?: unknown; signal?: AbortSignal; key?: string; headers?: Record<string, string>; repeated?: boolean };

// call returns the body of a response. key is a workspace key for calls of models, which
// no session may make; it replaces the cookie.
export async function call(path: string, params?: Params, o: Options = {}): Promise<any> {
  const method = o.method ?? "GET";
  const headers: Record<string, string> = { accept: "application/json", ...o.headers };
  if (o.key) headers["x-gateway-api-key"] = o.key;
  else if (method !== "GET" && session.csrf_token) headers["x-gateway-csrf"] = session.csrf_token;
  if (o.body !== undefined) headers["content-type"] = "application/json";
  let r: Response, sent: Headers;
  try { sent = new Headers(headers); } catch { throw new Failure(400, "header", "The key or a name contains characters that a header cannot have.", "", ""); }
  try {
    r = await fetch(address(path, params), { method, headers: sent, signal: o.signal, credentials: o.key ? "omit" : "same-origin", body: o.body === undefined ? undefined : JSON.stringify(o.body) });
  } catch (e) {
    if (o.signal?.aborted) throw e;
    throw new Failure(0, "offline", "The gateway cannot be reached. Check the connection.", "", "");
  }
  const clock = Date.parse(r.headers.get("date") ?? "") - Date.now();
  if (Math.abs(clock) > 60_000) ahead = clock;
  let text: string;
  try { text = await r.text(); } catch (e) {
    if (o.signal?.aborted) throw e;
    throw new Failure(0, "cut", "The response ended early. Check the connection.", "", "");
  }
  // A response of events ends with the one that was asked for.
  if (r.headers.get("content-type")?.startsWith("text/event-stream")) text = text.trim().split("\n").filter((l) => l.startsWith("data:")).at(-1)?.slice(5) ?? "";
  let body: any = {};
  try { body = text ? JSON.parse(text) : {}; } catch { if (r.ok) throw new Failure(0, "format", "The response is not JSON. A proxy between the browser and the gateway may have changed it.", "", ""); }
  if (!r.ok) {
    const e = body.error ?? {};
    if (r.status === 403 && e.field === "x-gateway-csrf" && !o.key && !o.repeated) {
      // Another tab opened another session.
      const s: Session = await call("/session"), before = session;
      if (s.type !== "none") setSession(s);
      if (s.type === before.type && s.api_key_id === before.api_key_id && s.user_id === before.user_id) return call(path, params, { ...o, repeated: true });
      dispatchEvent(new Event(s.type === "none" ? "console:ended" : "console:address"));
      throw new Failure(409, "session_changed", "Someone else signed in with this browser. Nothing was changed.", "", "");
    }
    const trace = r.headers.get("x-gateway-trace-id") ?? r.headers.get("x-gateway-request-id") ?? body.request_id ?? "";
    const more = (body.data?.errors ?? []).map((x: any) => x.field + ": " + x.message);
    const code = r.headers.get("x-gateway-error-code") ?? e.code ?? String(r.status);
    if (r.status === 401 && !o.key) dispatchEvent(new Event("console:ended"));
    throw new Failure(r.status, code, e.message ?? "The gateway answered with status " + r.status + ".", e.field ?? "", trace, more);
  }
  return body;
}
