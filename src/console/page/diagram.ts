// A machine's states as a drawing: layers from the initial state down, children inside of their
// parents. Pure: places, no elements.

export interface Node {
  id: string; // "orders.creating.disk"
  name: string;
  depth: number;
  type: string; // "final", "parallel", ...
  parent?: string;
  children: string[];
  x: number;
  y: number;
  width: number;
  height: number;
}
export interface Edge {
  from: string;
  to: string;
  events: string[];
}
export interface Drawing {
  nodes: Node[];
  edges: Edge[];
  width: number;
  height: number;
}

// More than this is a list and not a picture.
export const STATES_MAX = 300;

const STEP = 64; // Between two rows: room for an arrow and its label.
const GAP = 64;
const PAD = 14;
const TITLE = 26;

const lengthOf = (name: string) => Math.min(260, Math.max(84, 24 + 7.6 * Math.min(name.length, 32)));

interface Raw {
  node: Node;
  edges: Edge[];
  initial?: string;
}

function collect(definition: any, id: string, name: string, depth: number, parent: string | undefined, out: Map<string, Raw>): void {
  if (out.size >= STATES_MAX || depth > 20) return;
  const node: Node = { id, name, depth, type: String(definition?.type ?? ""), parent, children: [], x: 0, y: 0, width: 0, height: 0 };
  const raw: Raw = { node, edges: [], initial: typeof definition?.initial === "string" ? definition.initial : undefined };
  out.set(String(definition?.id ?? id), raw);
  const add = (event: string, transitions: any) => {
    for (const one of Array.isArray(transitions) ? transitions : []) {
      for (const target of Array.isArray(one?.target) ? one.target : []) {
        if (typeof target === "string") raw.edges.push({ from: id, to: target.replace(/^#/, ""), events: [event] });
      }
    }
  };
  for (const [event, transitions] of Object.entries(definition?.on ?? {})) add(event === "" ? "always" : event, transitions);
  for (const [delay, transitions] of Object.entries(definition?.after ?? {})) add(`after ${delay}${/^\d+$/.test(delay) ? " ms" : ""}`, transitions);
  if (Array.isArray(definition?.always)) add("always", definition.always);
  for (const [child, inner] of Object.entries<any>(definition?.states ?? {})) {
    const childId = String(inner?.id ?? `${id}.${child}`);
    node.children.push(childId);
    collect(inner, childId, child, depth + 1, id, out);
  }
}

// The layer of each of `ids`: its distance from the initial one, along edges between them.
function layers(ids: string[], initial: string | undefined, edges: Edge[]): string[][] {
  const layerOf = new Map<string, number>();
  const next: string[] = [initial && ids.includes(initial) ? initial : ids[0]];
  layerOf.set(next[0], 0);
  for (let at = 0; at < next.length || next.length < ids.length; at++) {
    if (at >= next.length) {
      // Not reachable from the others: below them.
      const rest = ids.find((id) => !layerOf.has(id))!;
      layerOf.set(rest, Math.max(...layerOf.values()) + 1);
      next.push(rest);
    }
    for (const edge of edges) {
      if (edge.from !== next[at] || layerOf.has(edge.to) || !ids.includes(edge.to)) continue;
      layerOf.set(edge.to, layerOf.get(next[at])! + 1);
      next.push(edge.to);
    }
  }
  const out: string[][] = [];
  for (const id of next) (out[layerOf.get(id)!] ??= []).push(id);
  return out.filter(Boolean);
}

export function drawingOf(definition: any): Drawing {
  const raws = new Map<string, Raw>();
  const root = String(definition?.id ?? "machine");
  collect(definition, root, root, 0, undefined, raws);
  const byId = new Map([...raws.values()].map((raw) => [raw.node.id, raw]));
  // Several events between the same two states share an arrow.
  const edges: Edge[] = [];
  for (const raw of raws.values()) {
    for (const edge of raw.edges) {
      if (!byId.has(edge.to)) continue;
      const same = edges.find((one) => one.from === edge.from && one.to === edge.to);
      if (same) {
        if (!same.events.includes(edge.events[0])) same.events.push(edge.events[0]);
      } else {
        edges.push(edge);
      }
    }
  }
  // The ancestor of `id`, or itself, that is a child of `parent`.
  const within = (id: string, parent: string): string | undefined => {
    let at: string | undefined = id;
    while (at !== undefined && byId.get(at)?.node.parent !== parent) at = byId.get(at)?.node.parent;
    return at;
  };
  const size = (id: string): void => {
    const { node, initial } = byId.get(id)!;
    const children = node.children.filter((child) => byId.has(child));
    if (!children.length) {
      node.width = lengthOf(node.name);
      node.height = 34;
      return;
    }
    children.forEach(size);
    const inner: Edge[] = [];
    for (const edge of edges) {
      const from = within(edge.from, id);
      const to = within(edge.to, id);
      if (from && to && from !== to) inner.push({ from, to, events: edge.events });
    }
    const first = initial === undefined ? undefined : children.find((child) => byId.get(child)!.node.name === initial);
    const rows = node.type === "parallel" ? [children] : layers(children, first, inner);
    let y = id === root ? PAD : TITLE + PAD;
    for (const row of rows) {
      let x = PAD;
      let tallest = 0;
      for (const child of row) {
        const one = byId.get(child)!.node;
        one.x = x;
        one.y = y;
        x += one.width + GAP;
        tallest = Math.max(tallest, one.height);
      }
      node.width = Math.max(node.width, x - GAP + PAD);
      y += tallest + STEP;
    }
    node.width = Math.max(node.width, lengthOf(node.name) + PAD);
    node.height = y - STEP + PAD;
    // Rows in the middle: most machines are a line with branches.
    for (const row of rows) {
      const last = byId.get(row[row.length - 1])!.node;
      const shift = (node.width - PAD - (last.x + last.width)) / 2;
      if (shift > 0) for (const child of row) byId.get(child)!.node.x += shift;
    }
  };
  size(root);
  const place = (id: string, x: number, y: number): void => {
    const { node } = byId.get(id)!;
    node.x += x;
    node.y += y;
    for (const child of node.children) if (byId.has(child)) place(child, node.x, node.y);
  };
  place(root, 0, 0);
  const whole = byId.get(root)!.node;
  return { nodes: [...byId.values()].map((raw) => raw.node), edges, width: whole.width, height: whole.height };
}

// The ids of the states that a value names: "ready", {"creating": {"disk": "made"}}.
export function activeIds(drawing: Drawing, value: unknown): Set<string> {
  const out = new Set<string>();
  const byId = new Map(drawing.nodes.map((node) => [node.id, node]));
  const walk = (parent: Node | undefined, rest: unknown) => {
    if (!parent) return;
    out.add(parent.id);
    const child = (name: string) => parent.children.map((id) => byId.get(id)).find((node) => node?.name === name);
    if (typeof rest === "string") walk(child(rest), undefined);
    else if (rest && typeof rest === "object") for (const [name, inner] of Object.entries(rest)) walk(child(name), inner);
  };
  walk(drawing.nodes.find((node) => node.parent === undefined), value);
  return out;
}

// A value for people: "creating.disk, creating.net".
export function valueText(value: unknown): string {
  const leaves = (rest: unknown, path: string): string[] => {
    if (typeof rest === "string") return [path ? `${path}.${rest}` : rest];
    if (!rest || typeof rest !== "object") return path ? [path] : [];
    const entries = Object.entries(rest);
    return entries.length ? entries.flatMap(([name, inner]) => leaves(inner, path ? `${path}.${name}` : name)) : [path];
  };
  return leaves(valueOf(value), "").join(", ");
}

// The heights of labels, moved down until none covers another.
export function apart(labels: { x: number; y: number; width: number }[], height: number): number[] {
  const placed: { x: number; y: number; width: number }[] = [];
  for (const one of labels) {
    let y = one.y;
    const isCovered = () => placed.some((other) => Math.abs(other.y - y) < height && Math.abs(other.x - one.x) < (other.width + one.width) / 2);
    for (let tries = 0; tries < 100 && isCovered(); tries++) y += height / 2;
    placed.push({ ...one, y });
  }
  return placed.map((one) => one.y);
}

// Values in a ledger are text: a name, or JSON for nested and parallel states.
export function valueOf(text: unknown): unknown {
  if (typeof text !== "string") return text;
  if (!text.startsWith("{") && !text.startsWith('"')) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// The events that the active states take.
export function eventsOf(drawing: Drawing, definition: any, active: Set<string>): string[] {
  const out = new Set<string>();
  const walk = (state: any, id: string, depth: number) => {
    if (!active.has(id) || depth > 20) return;
    for (const event of Object.keys(state?.on ?? {})) if (event && !/^(done|error|xstate)\./.test(event) && event !== "*") out.add(event);
    for (const [name, inner] of Object.entries<any>(state?.states ?? {})) walk(inner, String(inner?.id ?? `${id}.${name}`), depth + 1);
  };
  walk(definition, drawing.nodes[0]?.id ?? "", 0);
  return [...out];
}
