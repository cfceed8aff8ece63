import assert from "node:assert/strict";
import { test } from "node:test";

import { childrenOf, isReady } from "./readiness";

test("each kind is ready by its own rule", () => {
  assert.equal(isReady({ kind: "Deployment", metadata: { generation: 2 }, spec: { replicas: 2 }, status: { observedGeneration: 2, readyReplicas: 2, updatedReplicas: 2 } }), true);
  assert.equal(isReady({ kind: "Deployment", metadata: { generation: 3 }, spec: { replicas: 2 }, status: { observedGeneration: 2, readyReplicas: 2, updatedReplicas: 2 } }), false);
  assert.equal(isReady({ kind: "Job", status: { conditions: [{ type: "Complete", status: "True" }] } }), true);
  assert.equal(isReady({ kind: "Job", status: {} }), false);
  assert.equal(isReady({ kind: "ConfigMap" }), undefined);
  assert.equal(isReady({ kind: "Pod", status: { phase: "Running", conditions: [{ type: "Ready", status: "False" }] } }), false);
});

test("children are those that name their owner", () => {
  const all = [{ metadata: { uid: "b", ownerReferences: [{ uid: "a" }] } }, { metadata: { uid: "c" } }];
  assert.deepEqual(childrenOf({ metadata: { uid: "a" } }, all).map((one) => one.metadata.uid), ["b"]);
});
