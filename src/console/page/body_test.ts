import assert from "node:assert/strict";
import { test } from "node:test";

import { bodyOf } from "./body";

test("a body is indented if that changes nothing in it", () => {
  assert.equal(bodyOf({ bodyState: "whole", body: '{"data":{"a":"b"}}' })?.text, '{\n  "data": {\n    "a": "b"\n  }\n}');
  for (const body of ['{"generation":12345678901234567890}', '{"b":1,"1":2}', '{"data": 1}', "not JSON"]) assert.equal(bodyOf({ bodyState: "whole", body })?.text, body);
});

test("a cut body says so, and one that is not shown says why", () => {
  assert.equal(bodyOf({ bodyState: "cut", body: '{"data":{"a' })?.text, '{"data":{"a (cut here)');
  for (const [state, words] of [["withheld", "withheld"], ["too-large", "too large"], ["no-room", "waited"], ["unreadable", "neither JSON"], ["another", "another"]]) {
    const body = bodyOf({ bodyState: state });
    assert.ok(body?.words?.includes(words) && body.text === undefined, state);
  }
  assert.equal(bodyOf({}), undefined);
});

test("a body stays in ASCII, as it was recorded", () => {
  const body = '{"a":"\\u202e<b>\\u001b\\u05d0"}';
  assert.equal(bodyOf({ bodyState: "whole", body })?.text, '{\n  "a": "\\u202e<b>\\u001b\\u05d0"\n}');
  // Not recorded by hangar.
  assert.equal(bodyOf({ bodyState: "whole", body: '{"a":"\u202e"}' })?.text, '{"a":"\\u202e"}');
});
