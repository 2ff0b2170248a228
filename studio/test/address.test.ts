import assert from "node:assert/strict";
import { test } from "node:test";
import { formatAddress, parsePlace } from "../src/address";

test("an address has a workspace, a page and what the page shows", () => {
  const place = parsePlace("/w/team%20one/runs/a%2Fb/logs", "?rank=1");
  assert.equal(place.workspace, "team one");
  assert.equal(place.page, "runs");
  assert.deepEqual(place.rest, ["a/b", "logs"]);
  assert.equal(place.query.get("rank"), "1");
});

test("an address is written so that it is read again as it was", () => {
  const address = formatAddress("team one", "runs", ["a/b"], { filter: "lr < 0.1 & x", empty: "", absent: undefined });
  const url = new URL(address, "http://here");
  const place = parsePlace(url.pathname, url.search);
  assert.deepEqual(place.rest, ["a/b"]);
  assert.deepEqual([...place.query], [["filter", "lr < 0.1 & x"]]);
});

test("a segment that cannot be decoded is taken as it is", () => {
  assert.equal(parsePlace("/w/%zz", "").workspace, "%zz");
});
