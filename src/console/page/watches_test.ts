import assert from "node:assert/strict";
import { test } from "node:test";

import { openWatches } from "./watches";

test("only watches that are open now are shown, in the order of their resources", () => {
  const uses = [
    { verb: "watch", group: "apps", resource: "deployments", namespace: "team", isOpen: true },
    { verb: "watch", resource: "configmaps", namespace: "team", count: 3 },
    { verb: "list", resource: "configmaps", namespace: "team", count: 1 },
    { verb: "watch", resource: "configmaps", namespace: "b", isOpen: true },
    { verb: "watch", resource: "configmaps", isOpen: true },
  ];
  assert.deepEqual(openWatches({ uses, sharers: [] }).watches, [
    { resource: "configmaps", place: "" }, { resource: "configmaps", place: "b" }, { resource: "deployments.apps", place: "team" },
  ]);
});

test("other guests with the same identity are named", () => {
  const found = openWatches({ uses: [], sharers: [{ namespace: "team", name: "second" }, { namespace: "team", name: "first" }], sharersWithheld: 2 });
  assert.deepEqual(found, { watches: [], sharers: ["team/first", "team/second"], sharersWithheld: 2 });
});
