import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelRecord } from "../src/api/types";
import { readFiles, searchModels, writeLoading } from "../src/pages/models/listing";
import { describeShape, readOnnx } from "../src/pages/models/onnx";

const model = (name: string, more: Partial<ModelRecord> = {}): ModelRecord =>
  ({ name, version: 1, entry: "m.pkl", framework: "", description: "", experiment: "", tags: {}, ...more }) as ModelRecord;

test("a search needs every word", () => {
  const models = [model("churn", { tags: { stage: "live" } }), model("churn-old", { framework: "ScikitLearn" })];
  assert.deepEqual(searchModels(models, "CHURN live").map((each) => each.name), ["churn"]);
  assert.deepEqual(searchModels(models, "scikit").map((each) => each.name), ["churn-old"]);
  assert.equal(searchModels(models, "").length, 2);
});

test("what the conversion to ONNX recorded is read, whatever it is", () => {
  const onnx = readOnnx({
    opset: 17, framework: "PyTorch", framework_version: "2.3", exporter: "torch.onnx", converted_from: "churn:2",
    inputs: [{ name: "x", type: "float32", shape: ["batch", 4] }], outputs: [{ name: "y", type: "int64", shape: [] }],
    parity: { max_absolute: 1.2e-7, max_relative: 3e-7, tolerance: 1e-5, batches: [4, 1] },
  });
  assert.equal(onnx?.parity?.text, "Largest difference 1.2e-7 (3e-7 of the largest value), tolerance 1e-5");
  assert.equal(onnx?.inputs[0]?.shape, "batch × 4");
  assert.equal(onnx?.exporter, "PyTorch 2.3, by torch.onnx");
  assert.equal(readOnnx({ accuracy: 1 }), undefined);
  assert.ok(readOnnx({ opset: {}, inputs: 5, outputs: [null, 3], parity: [], quantized: "x", notes: 1 }));
  assert.equal(describeShape(null), "any shape");
});

test("lists of files and code", () => {
  assert.deepEqual(readFiles(null), []);
  assert.equal(readFiles({ files: [{ path: "a", digest: "d", size: 1 }, { nothing: 1 }] }).length, 1);
  assert.ok(writeLoading("team", "http://x", model('a"b')).includes('Model(workspace, "a\\"b", version=1)'));
});
