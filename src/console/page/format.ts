// Values as text for people. Everything that a cluster or a guest says passes through clean().

// Characters that would be invisible, end a line or turn the direction of what follows.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;
const HIDDEN_BUT_LINES = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

const shown = (letter: string) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`;

// A text of strangers, on one line and at most `most` characters long.
export function clean(text: unknown, most = 400): string {
  const whole = typeof text === "string" ? text : text === undefined || text === null ? "" : typeof text === "object" ? JSON.stringify(text) : String(text);
  const letters = whole.slice(0, most).replace(HIDDEN, shown);
  return whole.length > most ? `${letters}… (${whole.length} characters)` : letters;
}

// The same for a text of several lines.
export const cleanLines = (text: string): string => text.replace(HIDDEN_BUT_LINES, shown);

export function bytes(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let rest = value;
  while (rest >= 1024 && unit < units.length - 1) {
    rest /= 1024;
    unit++;
  }
  return `${rest >= 100 || unit === 0 ? Math.round(rest) : rest.toFixed(1)} ${units[unit]}`;
}

// Bytes that were held for a time, given as bytes times seconds.
export const mibHours = (byteSeconds: number): string => (byteSeconds / (2 ** 20 * 3600)).toFixed(2);

export function micros(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return "–";
  if (value < 1000) return `${Math.round(value)} µs`;
  if (value < 1e6) return `${(value / 1000).toFixed(value < 1e4 ? 1 : 0)} ms`;
  return seconds(value / 1e6);
}

export function seconds(value: number): string {
  if (value < 60) return `${value < 10 ? value.toFixed(1) : Math.round(value)} s`;
  if (value < 3600) return `${Math.floor(value / 60)} min ${Math.floor(value % 60)} s`;
  if (value < 86400) return `${Math.floor(value / 3600)} h ${Math.floor((value % 3600) / 60)} min`;
  return `${Math.floor(value / 86400)} d ${Math.floor((value % 86400) / 3600)} h`;
}

// How long ago, or how long until, a time of RFC 3339 is.
export function distance(time: string | undefined, now: number): string {
  const at = Date.parse(time ?? "");
  if (Number.isNaN(at)) return "–";
  const apart = (now - at) / 1000;
  return apart >= 0 ? `${seconds(apart)} ago` : `in ${seconds(-apart)}`;
}

export function clock(time: string | undefined): string {
  const at = new Date(time ?? "");
  if (Number.isNaN(at.getTime())) return "–";
  const two = (value: number) => String(value).padStart(2, "0");
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

export const count = (value: number | undefined): string => (value === undefined ? "–" : value.toLocaleString("en"));
