import assert from "node:assert/strict";
import { test } from "node:test";

import cases from "../../../tests/cases/readiness.json";
import { childrenOf, isReady } from "./readiness";

test("each kind is ready by the rule that hangar has for it", () => {
  for (const { name, state, metadata, ...object } of cases as any[]) {
    const ready = isReady({ ...object, metadata: { name: "a", generation: 2, ...metadata } });
    assert.equal(ready ?? true, state === "Ready", name);
  }
});

test("an object for which the page has no rule exists", () => {
  const ended = { conditions: [{ type: "Ready", status: "False" }], phase: "Succeeded" };
  assert.equal(isReady({ apiVersion: "v1", kind: "ConfigMap" }), undefined);
  assert.equal(isReady({ apiVersion: "v1", kind: "Service" }), undefined);
  assert.equal(isReady({ apiVersion: "example.com/v1", kind: "Deployment" }), undefined);
  assert.equal(isReady({ apiVersion: "v1", kind: "Pod", metadata: { ownerReferences: [{ kind: "Job" }] }, status: ended }), undefined);
});

test("children are those that name their owner", () => {
  const all = [{ metadata: { uid: "b", ownerReferences: [{ uid: "a" }] } }, { metadata: { uid: "c" } }];
  assert.deepEqual(childrenOf({ metadata: { uid: "a" } }, all).map((one) => one.metadata.uid), ["b"]);
});
