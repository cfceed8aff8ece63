import assert from "node:assert/strict";
import { test } from "node:test";

import { cellAt, gridOf, moved, operatorOf, stateOf, stepOf, withCosts } from "./fleet";

test("10,000 operators fit into a window and keep their order", () => {
  const grid = gridOf(10_000, 1240, 500);
  assert.ok(grid.rows * grid.cell <= 500 && grid.columns * grid.cell <= 1240 && grid.columns * grid.rows >= 10_000);
  assert.equal(cellAt(grid, grid.cell * 2 + 1, grid.cell + 1, 10_000), grid.columns + 2);
  assert.equal(cellAt(grid, 1239, 9999, 10_000), undefined);
});

test("a narrow window scrolls, and does not draw cells that nobody can hit", () => {
  const grid = gridOf(10_000, 330, 300);
  assert.equal(grid.cell, 6);
  assert.ok(grid.rows * grid.cell > 300);
});

test("arrow keys stay among the operators", () => {
  const grid = { columns: 10, rows: 3, cell: 10 };
  assert.equal(moved(0, "ArrowLeft", grid, 25), 0);
  assert.equal(moved(4, "ArrowDown", grid, 25), 14);
  assert.equal(moved(18, "ArrowDown", grid, 25), 18);
  assert.equal(moved(3, "End", grid, 25), 24);
});

test("costs of the records are added to their operators", () => {
  const listed = [operatorOf({ metadata: { namespace: "a", name: "x" }, status: { phase: "Running", wakes: 7 } }), operatorOf({ metadata: { namespace: "a", name: "y" } })];
  const shown = withCosts(listed, [{ contract: "operator", namespace: "a", name: "x", phase: "Asleep", cpuMicroseconds: 5, turns: 2, failures: 0, requests: 1, writtenBytes: 0, memoryBytes: 0, diskBytes: 9, restarts: 0 },
    { contract: "workflow", namespace: "a", name: "y", cpuMicroseconds: 99 }]);
  assert.deepEqual([stateOf(shown[0]), shown[0].cpu, shown[0].disk, shown[1].cpu, stateOf(shown[1])], ["asleep", 5, 9, 0, "waiting"]);
  assert.equal(stateOf({ phase: "BackOff", ready: "False" }), "failing");
});

test("colours are a scale of decades", () => {
  assert.equal(stepOf(0, 100), 0);
  assert.equal(stepOf(100, 100), 6);
  assert.equal(stepOf(10, 100), 4);
  assert.equal(stepOf(1e-9, 100), 1);
});
