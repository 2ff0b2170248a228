import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServiceRecord, ServiceTraffic } from "../src/api/types";
import { findInput, getAt, listFields, makeSample, parseScalar, setAt } from "../src/pages/services/form";
import { addSample, drawLine, estimateQuantile, formatLatency, listRates, summarizeRecent } from "../src/pages/services/traffic";
import { beautify, decodeBody, encodeBody, formatUri, quotePython, quoteShell, writeCurl } from "../src/pages/services/words";

const document = (schema: unknown, schemas: Record<string, unknown> = {}) => ({
  paths: { "/score": { post: { requestBody: { content: { "application/json": { schema } } } } } },
  components: { schemas },
});
const input = {
  type: "object",
  properties: {
    data: { type: "array", items: { type: "array", items: { type: "number" } } },
    customer: { type: "object", properties: { age: { type: "integer" }, plan: { enum: ["a", "b"] }, calls: { type: "array", items: { type: "integer" } } } },
    table: { type: "array", items: { type: "object", properties: { a: { type: "integer" }, b: { type: "string" } } } },
  },
  example: { data: [[1, 2]], customer: { age: 4, plan: "b", calls: [1] }, table: [{ a: 1, b: "x" }] },
};

test("fields follow the schema, and lists of rows are tables", () => {
  const schema = findInput(document({ $ref: "#/components/schemas/ServiceInput" }, { ServiceInput: input }));
  assert.ok(schema);
  const value = makeSample(schema);
  const fields = listFields(schema, value);
  assert.deepEqual(fields.map(({ label, kind }) => [label, kind]), [
    ["data", "table"], ["customer › age", "integer"], ["customer › plan", "choice"], ["customer › calls", "json"], ["table", "table"],
  ]);
  assert.deepEqual(fields[0]?.columns.map((each) => each.label), ["0", "1"]);
  assert.deepEqual(fields[4]?.columns.map((each) => each.kind), ["integer", "text"]);
});

test("a sample is made of the types if there is no example", () => {
  const { example: _, ...bare } = input;
  assert.deepEqual(makeSample(bare), { data: [[0]], customer: { age: 0, plan: "a", calls: [0] }, table: [{ a: 0, b: "" }] });
  assert.deepEqual(makeSample(findInput(document({ oneOf: [{ type: "object", properties: { data: { type: "array", items: {} } } }, {}] }))), { data: [{}] });
});

test("a document without a schema, or that refers to itself, gives no form", () => {
  for (const each of [{}, null, document({}), document({ $ref: "#/nowhere" })]) assert.equal(findInput(each), undefined);
  const endless = document({ $ref: "#/components/schemas/A" }, { A: { $ref: "#/components/schemas/A" } });
  assert.equal(findInput(endless), undefined);
  assert.ok(findInput(document({ $ref: "#/components/schemas/A" }, { A: { type: "object", properties: { a: { $ref: "#/components/schemas/A" } } } })));
});

test("single values are read and set, and the rest stays", () => {
  const value = { a: [{ b: 1 }, { b: 2 }], c: "x" };
  const changed = setAt(value, ["a", 1, "b"], 5);
  assert.deepEqual(changed, { a: [{ b: 1 }, { b: 5 }], c: "x" });
  assert.deepEqual(Object.keys(changed as object), ["a", "c"]);
  assert.equal(getAt(changed, ["a", 1, "b"]), 5);
  assert.equal(getAt(value, ["a", 7, "b"]), null);
  assert.equal(({} as Record<string, unknown>)["evil"], undefined);
  setAt({}, ["__proto__", "evil"], 1);
  assert.equal(({} as Record<string, unknown>)["evil"], undefined);
});

test("what is typed has to fit", () => {
  assert.deepEqual([parseScalar("number", "1e3"), parseScalar("integer", "1.5"), parseScalar("number", ""), parseScalar("number", "-")], [1000, undefined, undefined, undefined]);
});

const sample = (at: number, requests: number, counts: number[]): ServiceTraffic => ({
  at, requests, refused: 0, failed: 0, in_flight: 0, seconds: 0, replicas: [], is_answering: true,
  latency: counts.map((count, index) => ({ up_to: [0.01, 0.1, null][index] ?? null, count })),
});

test("rates and latencies come from differences", () => {
  const samples = [sample(0, 0, [0, 0, 0]), sample(10, 100, [90, 10, 0])];
  assert.deepEqual(listRates(samples), [10]);
  const recent = summarizeRecent(samples);
  assert.equal(recent?.rate, 10);
  assert.equal(recent?.requests, 100);
  assert.ok(Math.abs((recent?.median ?? 0) - 0.00556) < 1e-4);
  assert.equal(estimateQuantile([], 0.5), undefined);
  assert.equal(estimateQuantile([{ up_to: 0.01, count: 0 }, { up_to: null, count: 3 }], 0.5), 0.01);
});

test("counters that begin again, and old samples, are dropped", () => {
  assert.equal(addSample([sample(0, 50, [])], sample(1, 2, [])).length, 1);
  assert.equal(addSample([sample(0, 0, [])], sample(1000, 2, [])).length, 1);
  assert.equal(summarizeRecent([sample(0, 9, [9, 0, 0])])?.requests, 9);
  assert.deepEqual([0.000417, 0.012, 1.34].map(formatLatency), ["0.42 ms", "12 ms", "1.3 s"]);
  assert.ok(!drawLine([0], 10, 10).includes("NaN"));
});

test("addresses and code are safe to copy", () => {
  const service = { host: "127.0.0.1", port: 80 } as ServiceRecord;
  assert.equal(formatUri(service, "box"), "http://localhost:80/score");
  assert.equal(formatUri({ ...service, host: "0.0.0.0" }, "box"), "http://box:80/score");
  assert.equal(quoteShell("it's $(x)"), `'it'\\''s $(x)'`);
  assert.ok(writeCurl("u", true, { a: "'" }).includes(`'{"a":"'\\''"}'`));
  assert.equal(decodeBody(encodeBody("naïve 🙂")), "naïve 🙂");
  assert.equal(quotePython('{"a":1}'), `'{"a":1}'`);
  assert.equal(quotePython(`{"a":"'"}`), `"{\\"a\\":\\"'\\"}"`);
  assert.equal(beautify("no json"), "no json");
});
