import assert from "node:assert/strict";
import { test } from "node:test";

import { STATES_MAX, activeIds, apart, drawingOf, eventsOf, valueOf, valueText } from "./diagram";

const MACHINE = {
  id: "orders",
  initial: "waiting",
  states: {
    waiting: { id: "orders.waiting", on: { GO: [{ target: ["#orders.making"] }], STOP: [{ target: ["#orders.done"] }] } },
    making: {
      id: "orders.making", type: "parallel", on: { STOP: [{ target: ["#orders.done"] }] }, after: { 60000: [{ target: ["#orders.waiting"] }] },
      states: { disk: { id: "orders.making.disk", initial: "empty", states: { empty: { id: "orders.making.disk.empty" }, full: { id: "orders.making.disk.full" } } }, net: { id: "orders.making.net" } },
    },
    done: { id: "orders.done", type: "final" },
  },
};

test("states are placed once, children inside of their parents, and nothing overlaps", () => {
  const drawing = drawingOf(MACHINE);
  const at = (id: string) => drawing.nodes.find((node) => node.id === id)!;
  assert.equal(drawing.nodes.length, 8);
  for (const node of drawing.nodes) {
    if (node.parent === undefined) continue;
    const parent = at(node.parent);
    assert.ok(node.x >= parent.x && node.y >= parent.y && node.x + node.width <= parent.x + parent.width && node.y + node.height <= parent.y + parent.height, node.id);
    for (const other of drawing.nodes) {
      if (other === node || other.parent !== node.parent) continue;
      assert.ok(other.x >= node.x + node.width || node.x >= other.x + other.width || other.y >= node.y + node.height || node.y >= other.y + other.height, `${node.id} and ${other.id}`);
    }
  }
  assert.ok(at("orders.waiting").y < at("orders.making").y);
  assert.deepEqual(drawing.edges.find((edge) => edge.from === "orders.making" && edge.to === "orders.waiting")?.events, ["after 60000 ms"]);
});

test("a value names its states, and these name the events that are taken", () => {
  const drawing = drawingOf(MACHINE);
  const active = activeIds(drawing, valueOf('{"making": {"disk": "full", "net": {}}}'));
  assert.deepEqual([...active].sort(), ["orders", "orders.making", "orders.making.disk", "orders.making.disk.full", "orders.making.net"]);
  assert.deepEqual(eventsOf(drawing, MACHINE, active), ["STOP"]);
  assert.deepEqual(eventsOf(drawing, MACHINE, activeIds(drawing, valueOf("waiting"))), ["GO", "STOP"]);
});

test("a hostile machine has a bounded drawing", () => {
  const states = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`<script>${at}`, { id: `m.${at}`, on: { GO: [{ target: ["#nowhere"] }] } }]));
  assert.ok(drawingOf({ id: "m", states }).nodes.length <= STATES_MAX);
  assert.equal(drawingOf({}).nodes.length, 1);
  assert.equal(drawingOf(null).nodes.length, 1);
});

test("values are read as paths", () => {
  assert.equal(valueText("idle"), "idle");
  assert.equal(valueText('{"making": {"disk": "full", "net": {}}}'), "making.disk.full, making.net");
  assert.equal(valueText("{not json"), "{not json");
  assert.equal(valueText(undefined), "");
});

test("labels do not cover each other", () => {
  const places = apart([{ x: 0, y: 0, width: 50 }, { x: 20, y: 3, width: 50 }, { x: 200, y: 0, width: 50 }], 15);
  assert.ok(places[1] - places[0] >= 15);
  assert.equal(places[2], 0);
});
