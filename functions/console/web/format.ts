// Texts of numbers and times.
import { now } from "./api";

const plain = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

export const count = (n: number | null | undefined) => n == null ? "–" : Math.abs(n) >= 1e6 ? short.format(n) : plain.format(n);

// dollars never shows a positive amount as zero.
export function dollars(n: number | null | undefined): string {
  if (n == null) return "–";
  if (n === 0) return "$0.00";
  const size = Math.abs(n);
  if (size < 0.000001) return (n < 0 ? "-" : "") + "<$0.000001";
  const digits = size >= 1 ? 2 : size >= 0.01 ? 4 : 6;
  return (n < 0 ? "-$" : "$") + size.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: digits });
}

export const millis = (n: number | null | undefined) => n == null ? "–" : n >= 1000 ? (n / 1000).toFixed(2) + " s" : n >= 10 ? Math.round(n) + " ms" : n.toFixed(1) + " ms";
export const percent = (n: number | null | undefined) => n == null ? "–" : plain.format(n) + "%";

const near = new Intl.DateTimeFormat("en-US", { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const day = new Intl.DateTimeFormat("en-US", { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hour12: false });
export const moment = (iso: string) => { const d = new Date(iso); return isNaN(d.getTime()) ? iso : near.format(d); };
export const date = (iso: string | null | undefined) => { if (!iso) return "–"; const d = new Date(iso); return isNaN(d.getTime()) ? iso : day.format(d); };

// since says how long ago a time was, or how far away it is.
export function since(iso: string | null | undefined): string {
  if (!iso) return "–";
  const s = (now() - Date.parse(iso)) / 1000;
  const unit = (n: number, one: string) => Math.round(n) + " " + one + (Math.round(n) === 1 ? "" : "s");
  const size = Math.abs(s);
  const text = size < 60 ? "moments" : size < 3600 ? unit(size / 60, "minute") : size < 86400 ? unit(size / 3600, "hour") : unit(size / 86400, "day");
  return s >= 0 ? text + " ago" : "in " + text;
}

// maxShown is how many characters of a value are shown at first.
export const maxShown = 64 << 10;

// deep reports whether a value is nested more than n levels. It does not call itself, so
// that no value is too deep for it.
function deep(v: unknown, n: number): boolean {
  for (let level: unknown[] = [v]; level.length > 0; n--) {
    if (n < 0) return true;
    level = level.flatMap((x) => x && typeof x === "object" ? Object.values(x) : []);
  }
  return false;
}

// json formats a value. The indentation of deep values would be larger than their content.
export function json(v: unknown): string {
  if (typeof v === "string") return v;
  try { return JSON.stringify(v, null, deep(v, 100) ? 0 : 2) ?? ""; } catch { return "(nested too deeply to be shown)"; }
}

export const title = (name: string) => { const s = name.replaceAll("_", " ").replace(/[a-z](?=[A-Z])/g, "$& ").toLowerCase().replace(/\b(ai|api|id|url|mcp|sso|scim|ttl)\b/g, (w) => w.toUpperCase()).replace(/\bids\b/g, "IDs").replace(/\borganisation/g, "organization"); return s[0].toUpperCase() + s.slice(1); };

// lines is a difference of two texts: each line with " ", "-" or "+".
export function lines(before: string, after: string): [string, string][] {
  const a = before.split("\n"), b = after.split("\n");
  if (a.length * b.length > 4e6) return [["-", "(" + a.length + " lines)"], ["+", "(" + b.length + " lines)"]];
  const t = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) t[i][j] = a[i] === b[j] ? t[i + 1][j + 1] + 1 : Math.max(t[i + 1][j], t[i][j + 1]);
  const out: [string, string][] = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { out.push([" ", a[i++]]); j++; }
    else if (j < b.length && (i === a.length || t[i][j + 1] > t[i + 1][j])) out.push(["+", b[j++]]);
    else out.push(["-", a[i++]]);
  }
  return out;
}
