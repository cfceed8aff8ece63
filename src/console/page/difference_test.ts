import assert from "node:assert/strict";
import { test } from "node:test";

import { partsOf, refOf, summary } from "./difference";
import type { Compared } from "./difference";

test("lines of one sort are one part, and the names of the sides are no changes", () => {
  assert.deepEqual(partsOf("--- a\n+++ b\n@@ -1,3 +1,3 @@\n kept\n-one\n-two\n+three\n kept\n"), [
    { sort: "head", text: "--- a\n+++ b\n@@ -1,3 +1,3 @@" }, { sort: "kept", text: " kept" }, { sort: "removed", text: "-one\n-two" }, { sort: "added", text: "+three" }, { sort: "kept", text: " kept" }]);
});

test("a removed line that looks like a name of a side is a removed line", () => {
  assert.equal(partsOf("--- a\n+++ b\n@@ -1 +1 @@\n--- x\n+++ y\n").filter((one) => one.sort === "removed")[0].text, "--- x");
});

test("hidden characters are shown, and long lines are cut", () => {
  const [, part] = partsOf(`--- a\n+++ b\n+\u202e\u001b${"x".repeat(3000)}`);
  assert.ok(part.text.startsWith("+\\u202e\\u001bxxx") && part.text.endsWith("… (3003 characters)") && part.text.length < 2100);
});

test("a resource is named as in a release", () => {
  assert.equal(refOf({ apiVersion: "apps/v1", kind: "Deployment", metadata: { namespace: "n", name: "web" } }), "n/Deployment.apps:web");
  assert.equal(refOf({ apiVersion: "v1", kind: "Namespace", metadata: { name: "n" } }), "/Namespace:n");
});

test("the outcome is told in words", () => {
  const drift = (...all: Compared["drift"][]) => ({ revision: 2, interrupted: 0, leftOut: 0, resources: all.map((one) => ({ resource: "r", drift: one })) });
  assert.equal(summary(drift("none")), "No difference: the cluster has what the flight printed (1 resource, revision 2).");
  assert.equal(summary(drift("none", "differs")), "Of 2 resources (revision 2): 1 differs from the flight's output.");
  assert.equal(summary({ ...drift("differs", "differs", "missing", "unknown"), leftOut: 3 }),
    "Of 7 resources (revision 2): 2 differ from the flight's output; 1 is missing in the cluster; 1 could not be read; 3 were not compared: too many, or it took too long.");
  assert.equal(summary({ ...drift(), revision: 0 }), "No output of the flight has been applied completely yet.");
  assert.equal(summary({ ...drift("none"), interrupted: 1 }), "No difference: the cluster has what the flight printed (1 resource, revision 2). A newer output is not completely applied.");
});
