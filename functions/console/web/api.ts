// Calls of the public API. The key is held in memory only: a reload asks for it again.
let key = "";
let csrf = "";

export class Failure extends Error {
  status: number; code: string; field: string; trace: string;
  constructor(status: number, code: string, message: string, field: string, trace: string) {
    super(message);
    this.status = status; this.code = code; this.field = field; this.trace = trace;
  }
}

export const setKey = (k: string) => { key = k; };
export const setCsrf = (t: string) => { csrf = t; };
export const usesKey = () => key !== "";

type Params = Record<string, string | undefined>;

export function address(path: string, params: Params = {}): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) if (v) q.set(k, v);
  return "/v1" + path + (q.size ? "?" + q : "");
}

export async function call(path: string, params?: Params, method = "GET", signal?: AbortSignal): Promise<any> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (key) headers["x-gateway-api-key"] = key;
  else if (method !== "GET" && csrf) headers["x-gateway-csrf"] = csrf;
  let r: Response;
  try {
    r = await fetch(address(path, params), { method, headers, signal });
  } catch (e) {
    if (signal?.aborted) throw e;
    throw new Failure(0, "offline", "The gateway cannot be reached. Check the connection.", "", "");
  }
  const text = await r.text();
  let body: any = {};
  try { body = text ? JSON.parse(text) : {}; } catch { /* handled below by the status */ }
  if (!r.ok) {
    const e = body.error ?? {};
    const trace = r.headers.get("x-gateway-trace-id") ?? body.request_id ?? "";
    throw new Failure(r.status, e.code ?? String(r.status), e.message ?? "The gateway answered with status " + r.status + ".", e.field ?? "", trace);
  }
  return body;
}
