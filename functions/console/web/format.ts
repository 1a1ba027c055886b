// Texts of numbers and times.
const plain = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

export const count = (n: number | null | undefined) => n == null ? "–" : plain.format(n);

// dollars never shows a positive amount as zero.
export function dollars(n: number | null | undefined): string {
  if (n == null) return "–";
  if (n === 0) return "$0.00";
  const size = Math.abs(n);
  if (size < 0.000001) return (n < 0 ? "-" : "") + "<$0.000001";
  const digits = size >= 1 ? 2 : 6;
  return (n < 0 ? "-$" : "$") + size.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: digits });
}

export const millis = (n: number | null | undefined) => n == null ? "–" : n >= 1000 ? (n / 1000).toFixed(2) + " s" : n >= 10 ? Math.round(n) + " ms" : n.toFixed(1) + " ms";
export const percent = (n: number | null | undefined) => n == null ? "–" : plain.format(n) + "%";

const near = new Intl.DateTimeFormat("en-US", { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });
export const moment = (iso: string) => { const d = new Date(iso); return isNaN(d.getTime()) ? iso : near.format(d); };

// maxShown is how many characters of a value are shown at first.
export const maxShown = 64 << 10;

// json formats a value.
export function json(v: unknown): string {
  try { return typeof v === "string" ? v : JSON.stringify(v, null, 2) ?? ""; } catch { return "(nested too deeply to be shown)"; }
}
