// A text of differences in unified form as parts for the page. Pure.
import { cleanLines } from "./format";

export type Sort = "head" | "kept" | "removed" | "added";
export interface Part {
  sort: Sort;
  text: string; // One or more lines, each with its sign.
}

// Of a longer line, such as a document in a ConfigMap, the beginning is shown.
const LINE_MAX = 2000;

function cut(line: string): string {
  return line.length > LINE_MAX ? `${line.slice(0, LINE_MAX)}… (${line.length} characters)` : line;
}

// Lines of one sort that follow each other are one part: a long text has few elements then.
export function partsOf(difference: string): Part[] {
  const parts: Part[] = [];
  const lines = difference.replace(/\n$/, "").split("\n");
  lines.forEach((line, at) => {
    // The first two lines name the sides.
    const sort: Sort = at < 2 || line.startsWith("@@") ? "head" : line.startsWith("-") ? "removed" : line.startsWith("+") ? "added" : "kept";
    const last = parts[parts.length - 1];
    const text = cleanLines(cut(line));
    if (last?.sort === sort) last.text += `\n${text}`;
    else parts.push({ sort, text });
  });
  return parts;
}

// "team-0/Deployment.apps:web", as the server names a resource of a release.
export function refOf(object: { apiVersion: string; kind: string; metadata: { namespace?: string; name: string } }): string {
  const group = object.apiVersion.includes("/") ? `.${object.apiVersion.split("/")[0]}` : "";
  return `${object.metadata.namespace ?? ""}/${object.kind}${group}:${object.metadata.name}`;
}

export interface Compared {
  resource: string;
  drift: "none" | "differs" | "missing" | "unknown";
  difference?: string;
  isCut?: boolean;
  error?: string;
}
export interface Drift {
  revision: number;
  interrupted: number;
  leftOut: number;
  resources: Compared[];
}

// The outcome of a comparison, in words.
export function summary(drift: Drift): string {
  if (drift.revision === 0) return "No output of the flight has been applied completely yet.";
  const of = `revision ${drift.revision}`;
  const count = (wanted: Compared["drift"]) => drift.resources.filter((one) => one.drift === wanted).length;
  const words: string[] = [];
  const different = count("differs");
  const missing = count("missing");
  const unknown = count("unknown");
  if (different) words.push(`${different} differ${different === 1 ? "s" : ""} from the flight's output`);
  if (missing) words.push(`${missing} ${missing === 1 ? "is" : "are"} missing in the cluster`);
  if (unknown) words.push(`${unknown} could not be read`);
  if (drift.leftOut) words.push(`${drift.leftOut} ${drift.leftOut === 1 ? "was" : "were"} not compared: too many, or it took too long`);
  const all = drift.resources.length + drift.leftOut;
  const whole = `${all} resource${all === 1 ? "" : "s"}`;
  const later = drift.interrupted ? " A newer output is not completely applied." : "";
  if (!words.length) return `No difference: the cluster has what the flight printed (${whole}, ${of}).${later}`;
  return `Of ${whole} (${of}): ${words.join("; ")}.${later}`;
}
