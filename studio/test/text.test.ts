import assert from "node:assert/strict";
import { test } from "node:test";
import { formatAge, formatBytes, formatDuration, formatNumber, toNumber } from "../src/text/numbers";
import { describeStatus, isActive } from "../src/text/status";

test("numbers are short", () => {
  assert.equal(formatNumber(0.123456789), "0.12346");
  assert.equal(formatNumber(1500), "1500");
  assert.equal(formatNumber(0.00001), "1e-5");
  assert.equal(formatNumber("NaN"), "NaN");
  assert.equal(formatNumber("-Infinity"), "−∞");
  assert.ok(Number.isNaN(toNumber(null)));
});

test("sizes and times have units", () => {
  assert.equal(formatBytes(999), "999 B");
  assert.equal(formatBytes(1500), "1.5 kB");
  assert.equal(formatDuration(0.25), "250 ms");
  assert.equal(formatDuration(3725), "1 h 2 min");
  assert.equal(formatAge(100, 400), "5 min ago");
});

test("a state is written in words", () => {
  assert.equal(describeStatus("NotStarted").label, "Not started");
  assert.ok(isActive("Running"));
  assert.ok(!isActive("Completed"));
});
