// What the map of operators shows: their state, their colour and their places. Pure.

export type State = "asleep" | "awake" | "failing" | "waiting";

export interface Operator {
  namespace: string;
  name: string;
  phase: string;
  ready: string; // Status of the condition Ready.
  message: string; // Why it is not ready.
  memory: number;
  disk: number;
  wakes: number; // Since the host started it.
  restarts: number;
  // Of the window of the records; undefined without records.
  cpu?: number;
  turns?: number;
  failures?: number;
  requests?: number;
  written?: number;
}

export const keyOf = (one: { namespace: string; name: string }): string => `${one.namespace}/${one.name}`;

export function stateOf(one: Pick<Operator, "phase" | "ready">): State {
  if (one.phase === "BackOff" || one.phase === "Failed") return "failing";
  if (one.phase === "Asleep") return "asleep";
  if (one.phase === "Running" || one.phase === "Starting") return "awake";
  if (one.phase === "Completed") return "asleep";
  return "waiting";
}

// An Operator of the cluster, as the map keeps it.
export function operatorOf(object: any): Operator {
  const status = object.status ?? {};
  const ready = (status.conditions ?? []).find((one: any) => one.type === "Ready") ?? {};
  return {
    namespace: String(object.metadata?.namespace ?? ""),
    name: String(object.metadata?.name ?? ""),
    phase: String(status.phase ?? "Pending"),
    ready: String(ready.status ?? "Unknown"),
    message: ready.status === "True" ? "" : String(ready.message ?? status.lastError ?? "").slice(0, 1000),
    memory: Number(status.residentBytes ?? 0),
    disk: Number(status.onDiskBytes ?? 0),
    wakes: Number(status.wakes ?? 0),
    restarts: Number(status.restarts ?? 0),
  };
}

// Adds the records' rows; a row's phase is newer than the object's, which is brought up to date now and then.
export function withCosts(operators: Operator[], rows: any[]): Operator[] {
  const costs = new Map<string, any>();
  for (const row of rows) if (row.contract === "operator") costs.set(keyOf(row), row);
  return operators.map((one) => {
    const row = costs.get(keyOf(one));
    if (!row) return { ...one, cpu: 0, turns: 0, failures: 0, requests: 0, written: 0 };
    return {
      ...one,
      phase: row.phase ?? one.phase,
      memory: row.memoryBytes ?? one.memory,
      disk: row.diskBytes ?? one.disk,
      restarts: row.restarts ?? one.restarts,
      cpu: row.cpuMicroseconds,
      turns: row.turns,
      failures: row.failures,
      requests: row.requests,
      written: row.writtenBytes,
    };
  });
}

export const MEASURES = {
  state: { title: "State", of: () => 0 },
  cpu: { title: "CPU", of: (one: Operator) => one.cpu ?? 0 },
  wakes: { title: "Wakes", of: (one: Operator) => one.turns ?? one.wakes },
  memory: { title: "Memory", of: (one: Operator) => one.memory },
  requests: { title: "API calls", of: (one: Operator) => one.requests ?? 0 },
} as const;
export type Measure = keyof typeof MEASURES;

// 0 to 6 on a scale of decades down from the largest value: costs differ by orders of magnitude.
export const STEPS = 7;
export function stepOf(value: number, largest: number): number {
  if (value <= 0 || largest <= 0) return 0;
  return Math.max(1, Math.min(STEPS - 1, Math.round(STEPS - 1 + 2 * Math.log10(value / largest))));
}

export interface Grid {
  columns: number;
  rows: number;
  cell: number; // Side of a cell with its gap, in CSS pixels.
}
// The largest cells with which `total` of them fit into the width and, if it can be, the height.
export function gridOf(total: number, width: number, height: number, least = 6, most = 34): Grid {
  let cell = most;
  while (cell > least && Math.ceil(total / Math.max(1, Math.floor(width / cell))) * cell > height) cell--;
  const columns = Math.max(1, Math.floor(width / cell));
  return { columns, rows: Math.ceil(total / columns), cell };
}
export function cellAt(grid: Grid, x: number, y: number, total: number): number | undefined {
  const column = Math.floor(x / grid.cell);
  const row = Math.floor(y / grid.cell);
  const index = row * grid.columns + column;
  return column >= 0 && column < grid.columns && row >= 0 && index < total ? index : undefined;
}

// The cell that an arrow key leads to.
export function moved(index: number, key: string, grid: Grid, total: number): number {
  const by: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -grid.columns, ArrowDown: grid.columns };
  if (key === "Home") return 0;
  if (key === "End") return total - 1;
  const next = index + (by[key] ?? 0);
  return next >= 0 && next < total ? next : index;
}
