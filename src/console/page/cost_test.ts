import assert from "node:assert/strict";
import { test } from "node:test";

import { shownCosts, sortedCosts, sumOf } from "./cost";
import type { CostRow } from "./cost";

const row = (namespace: string, cpuMicroseconds: number, module?: string): CostRow => ({
  namespace, module, cpuMicroseconds, memoryByteSeconds: 1, cacheByteSeconds: 2, diskByteSeconds: 3, turns: 4, requests: 5, readBytes: 6, writtenBytes: 7,
});
const ROWS = [row("(host)", 1000), row("cheap", 9, "aa"), row("busy", 3), row("busy", 20, "bb"), row("busy", 20, "aa"), row("also", 9)];

test("the most expensive namespace is first with its modules, and the host is last", () => {
  assert.deepEqual(sortedCosts(ROWS).map((one) => `${one.namespace} ${one.module ?? "-"}`), ["busy aa", "busy bb", "busy -", "also -", "cheap aa", "(host) -"]);
});

test("rows that are left out are in their own sum and in the whole one", () => {
  const shown = shownCosts(ROWS, 2);
  assert.deepEqual([shown.rows.length, shown.leftOut, shown.more?.cpuMicroseconds, shown.host?.cpuMicroseconds, shown.sum.cpuMicroseconds], [2, 3, 21, 1000, 1061]);
  assert.deepEqual(shown.sum, sumOf(ROWS));
  const all = shownCosts(ROWS.slice(1), 5);
  assert.deepEqual([all.rows.length, all.leftOut, all.more, all.host, all.sum.writtenBytes], [5, 0, undefined, undefined, 35]);
});
