import assert from "node:assert/strict";
import { test } from "node:test";

import { bytes, clean, cleanLines, distance, mibHours, micros } from "./format";

test("control characters and marks of direction become visible", () => {
  assert.equal(clean("a\u001b[31mb\u202ec\nd\u2066"), "a\\u001b[31mb\\u202ec\\u000ad\\u2066");
  assert.equal(cleanLines("a\n\tb\u0007\u200f"), "a\n\tb\\u0007\\u200f");
});

test("a long text is cut, and says how long it was", () => {
  assert.equal(clean("<script>".repeat(512), 8), "<script>… (4096 characters)");
  assert.equal(clean(undefined), "");
  assert.equal(clean({ type: "GO" }), '{"type":"GO"}');
});

test("amounts have the unit that people use", () => {
  assert.deepEqual([bytes(0), bytes(1023), bytes(1536), bytes(200 * 2 ** 20)], ["0 B", "1023 B", "1.5 KiB", "200 MiB"]);
  assert.deepEqual([micros(12), micros(1500), micros(2_500_000), micros(undefined)], ["12 µs", "1.5 ms", "2.5 s", "–"]);
  assert.deepEqual([mibHours(0), mibHours(2 ** 20 * 5400)], ["0.00", "1.50"]);
  assert.equal(distance("2026-01-01T00:00:00Z", Date.parse("2026-01-01T00:02:05Z")), "2 min 5 s ago");
  assert.equal(distance("2026-01-01T00:00:10Z", Date.parse("2026-01-01T00:00:00Z")), "in 10 s");
  assert.equal(distance("nonsense", 0), "–");
});
