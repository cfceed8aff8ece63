// The rows of the table of costs, as `hangar top --cost` orders them. Pure.

// The host itself: a row that belongs to no namespace. No namespace can have this name.
export const HOST_ROW = "(host)";

const AMOUNTS = ["cpuMicroseconds", "memoryByteSeconds", "cacheByteSeconds", "diskByteSeconds", "turns", "requests", "readBytes", "writtenBytes"] as const;
export type Cost = Record<(typeof AMOUNTS)[number], number>;

export interface CostRow extends Cost {
  namespace: string;
  module?: string; // SHA-256; undefined: work that belongs to no single module.
}

export function sumOf(rows: Cost[]): Cost {
  const sum = Object.fromEntries(AMOUNTS.map((one) => [one, 0])) as Cost;
  for (const row of rows) for (const one of AMOUNTS) sum[one] += row[one] ?? 0;
  return sum;
}

const compare = (left: string, right: string) => (left < right ? -1 : left > right ? 1 : 0);

// The most expensive namespace first, its modules below each other; the host last.
export function sortedCosts(rows: CostRow[]): CostRow[] {
  const sums = new Map<string, number>();
  for (const row of rows) sums.set(row.namespace, (sums.get(row.namespace) ?? 0) + row.cpuMicroseconds);
  const isHost = (row: CostRow) => Number(row.namespace === HOST_ROW);
  return [...rows].sort(
    (left, right) =>
      isHost(left) - isHost(right) ||
      sums.get(right.namespace)! - sums.get(left.namespace)! ||
      compare(left.namespace, right.namespace) ||
      right.cpuMicroseconds - left.cpuMicroseconds ||
      compare(left.module ?? "", right.module ?? ""),
  );
}

export interface ShownCosts {
  rows: CostRow[];
  leftOut: number;
  more?: Cost; // Of the rows that are left out.
  host?: CostRow;
  sum: Cost;
}

// At most `most` rows of namespaces; the sum is that of all.
export function shownCosts(rows: CostRow[], most: number): ShownCosts {
  const namespaces = sortedCosts(rows).filter((row) => row.namespace !== HOST_ROW);
  const rest = namespaces.slice(most);
  return {
    rows: namespaces.slice(0, most),
    leftOut: rest.length,
    more: rest.length ? sumOf(rest) : undefined,
    host: rows.find((row) => row.namespace === HOST_ROW),
    sum: sumOf(rows),
  };
}
