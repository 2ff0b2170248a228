import assert from "node:assert/strict";
import { test } from "node:test";
import { fillPath, formatQuery } from "../src/api/client";

test("names in a path are encoded, those with several segments by segment", () => {
  const { path, left } = fillPath("/w/{workspace}/files/{name:path}", { workspace: "a/b", name: "x y/../z", size: 3 });
  assert.equal(path, "/w/a%2Fb/files/x%20y/../z");
  assert.deepEqual(left, { size: 3 });
});

test("a query repeats the name of a list and leaves out what is absent", () => {
  assert.equal(formatQuery({ columns: ["a", "b"], limit: 5, cursor: null, order: undefined }), "?columns=a&columns=b&limit=5");
  assert.equal(formatQuery({}), "");
});
