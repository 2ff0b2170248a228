/** What the conversion of a model to ONNX recorded, read from the model's facts. */
import { formatBytes, formatNumber, toNumber } from "../../text/numbers";

export interface Tensor {
  name: string;
  type: string;
  shape: string;
}

export interface Onnx {
  opset: string;
  exporter: string;
  source: string;
  inputs: Tensor[];
  outputs: Tensor[];
  parity: Parity | undefined;
  quantized: string;
  notes: string[];
}

export interface Parity {
  /** Whether it says that the answers agree: a model that does not is not registered by a conversion. */
  text: string;
  tried: string;
}

type Facts = Readonly<Record<string, unknown>>;

/** Facts come from files that anybody may have made: everything in them may be of any kind. */
export function readOnnx(facts: Facts): Onnx | undefined {
  const inputs = readTensors(facts["inputs"]);
  const outputs = readTensors(facts["outputs"]);
  if (facts["opset"] === undefined && !isObject(facts["parity"])) return undefined;
  const framework = [facts["framework"], facts["framework_version"]].filter(isText).join(" ");
  return {
    opset: facts["opset"] === undefined ? "" : String(facts["opset"]),
    exporter: [framework, isText(facts["exporter"]) ? `by ${facts["exporter"]}` : ""].filter(Boolean).join(", "),
    source: isText(facts["converted_from"]) ? facts["converted_from"] : "",
    inputs,
    outputs,
    parity: readParity(facts["parity"]),
    quantized: readQuantized(facts["quantized"]),
    notes: Array.isArray(facts["notes"]) ? facts["notes"].map(String) : [],
  };
}

function readParity(value: unknown): Parity | undefined {
  if (!isObject(value)) return undefined;
  const relative = toNumber(value["max_relative"]);
  const share = Number.isNaN(relative) ? "" : ` (${formatNumber(relative)} of the largest value)`;
  const limit = value["tolerance"] === undefined ? "" : `, tolerance ${formatNumber(value["tolerance"])}`;
  const batches = Array.isArray(value["batches"]) ? value["batches"].map(String) : [];
  return {
    text: `Largest difference ${formatNumber(value["max_absolute"])}${share}${limit}`,
    tried: batches.length ? `Compared with the original model on batches of ${batches.join(", ")}` : "",
  };
}

function readQuantized(value: unknown): string {
  if (!isObject(value)) return "";
  const sizes = `${formatBytes(toNumber(value["bytes_before"]))} to ${formatBytes(toNumber(value["bytes_after"]))}`;
  const before = toNumber(value["accuracy_before"]);
  const after = toNumber(value["accuracy_after"]);
  const accuracy = Number.isNaN(before) || Number.isNaN(after) ? "" : `, accuracy ${formatNumber(before)} to ${formatNumber(after)}`;
  return `int8 (${String(value["kind"] ?? "")}): ${sizes}, largest difference ${formatNumber(value["max_absolute"])}${accuracy}`;
}

function readTensors(value: unknown): Tensor[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isObject).map((each) => ({
    name: String(each["name"] ?? ""),
    type: String(each["type"] ?? ""),
    shape: describeShape(each["shape"]),
  }));
}

/** `["batch", 4]` is "batch × 4"; null stands for any shape, an empty list for one value. */
export function describeShape(shape: unknown): string {
  if (!Array.isArray(shape)) return "any shape";
  return shape.length ? shape.map((size) => (size === null ? "?" : String(size))).join(" × ") : "one value";
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
