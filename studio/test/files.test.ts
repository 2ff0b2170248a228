import assert from "node:assert/strict";
import { test } from "node:test";
import { tokenize } from "../src/pages/run/code/python";
import { listRows, makeTree } from "../src/components/tree";

const none: ReadonlySet<string> = new Set();
const paths = (rows: { path: string }[]) => rows.map((each) => each.path);

test("names become a tree, folders first, numbers in their order", () => {
  const files = ["outputs/step_10.txt", "outputs/step_9.txt", "a.txt", "logs/deep/x"].map((name) => ({ name, size: 2 }));
  const rows = listRows(makeTree(files), none, "", false);
  assert.deepEqual(paths(rows), ["logs/", "logs/deep/", "logs/deep/x", "outputs/", "outputs/step_9.txt", "outputs/step_10.txt", "a.txt"]);
  assert.deepEqual([rows[3]?.size, rows[3]?.count, rows[2]?.depth], [4, 2, 2]);
  assert.deepEqual(paths(listRows(makeTree(files), new Set(["logs/"]), "", false)).slice(0, 2), ["logs/", "outputs/"]);
  assert.deepEqual(paths(listRows(makeTree(files, "STEP_9"), none, "", true)), ["outputs/", "outputs/step_9.txt"]);
});

test("of many files only the folders are shown, and the way to the chosen one", () => {
  const files = Array.from({ length: 5000 }, (_, number) => ({ name: `f${number % 5}/x${number}`, size: 1 }));
  assert.equal(listRows(makeTree(files), none, "", false).length, 5);
  assert.equal(listRows(makeTree(files), none, "f1/x1", false).length, 1005);
});

test("names of files cannot be mistaken for parts of objects", () => {
  const rows = listRows(makeTree([{ name: "__proto__/constructor", size: 1 }]), none, "", false);
  assert.deepEqual(paths(rows), ["__proto__/", "__proto__/constructor"]);
});

const kinds = (text: string) => tokenize(text).filter((each) => each.kind).map((each) => [each.kind, each.text]);

test("Python is cut into words, texts, numbers and comments, and nothing is lost", () => {
  const text = [
    "@decorate.it(1)",
    "async def f(x: int = 0x1F) -> None:  # why",
    '    """Doc',
    'string "inside" """',
    "    return f'a{x}' + r\"\\n\" + 1_000.5e-3 if x else b'\\''",
    "class A: pass",
    "match x:",
    "    case 1: pass",
    "match = self.class_.def_",
    "größe = 'unfinished",
    "y = '''never ends",
    "z = 1",
  ].join("\n");
  assert.equal(tokenize(text).map((each) => each.text).join(""), text);
  const found = kinds(text);
  const has = (kind: string, value: string) => assert.ok(found.some((each) => each[0] === kind && each[1] === value), `${kind} ${value}`);
  has("decorator", "@decorate.it");
  has("name", "f");
  has("name", "A");
  has("number", "0x1F");
  has("number", "1_000.5e-3");
  has("comment", "# why");
  has("string", '"""Doc\nstring "inside" """');
  has("string", "f'a{x}'");
  has("string", "b'\\''");
  has("string", "'unfinished");
  has("string", "'''never ends\nz = 1");
  has("keyword", "match");
  assert.ok(!found.some((each) => each[1] === "match = "));
  assert.deepEqual(kinds("match = 1"), [["number", "1"]]);
  assert.deepEqual(kinds("x.import_ = y.match"), []);
});

test("nothing of long and hostile code is lost", () => {
  // With a step that looks back over everything, these would take minutes.
  const all = ['"'.repeat(100_000), `'''${"\\".repeat(100_000)}`, `@${"a.".repeat(100_000)}`, `${" ".repeat(200_000)}match`, "match ".repeat(50_000), "a@b ".repeat(50_000)];
  for (const text of all) assert.equal(tokenize(text).map((each) => each.text).join(""), text);
});
