import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunRecord } from "../src/api/types";
import { formatArguments, parseArguments } from "../src/pages/run/arguments";
import { quotePython, quoteShell, writeCommands } from "../src/pages/run/commands";
import { parseInline, parseMarkdown } from "../src/pages/run/markdown";

test("arguments become rows, and the same words again", () => {
  const words = ["--lr", "0.1", "--fast", "--name=a=b", "-v", "-1", "file.txt", "--empty", "", "--", "x"];
  const rows = parseArguments(words);
  assert.deepEqual(rows.slice(0, 3).map((row) => [row.name, row.value]), [["--lr", "0.1"], ["--fast", undefined], ["--name", "a=b"]]);
  assert.deepEqual(formatArguments(rows), words);
  const odd = ["-", "--=x", "-.5", "=", "--a", "--b=", "$AZUREML_DATAREFERENCE_x"];
  assert.deepEqual(formatArguments(parseArguments(odd)), odd);
  assert.deepEqual(formatArguments([{ name: "", value: undefined, isJoined: false }]), []);
});

test("commands quote what a shell or Python would read otherwise", () => {
  assert.equal(quoteShell("it's $HOME"), `'it'"'"'s $HOME'`);
  assert.equal(quoteShell("train.py"), "train.py");
  assert.equal(quoteShell(""), "''");
  assert.equal(quotePython('a"b\n'), '"a\\"b\\n"');
});

test("a run with a job has commands that repeat it", () => {
  const run = { id: "r1", experiment: "my exp", target: "gpu", spec: JSON.stringify({ script: "train.py", arguments: ["--lr", "$(rm x)"] }) } as RunRecord;
  const commands = writeCommands(run, "team a", "http://host");
  assert.equal(commands?.shell, "trainmaster submit code train.py --experiment 'my exp' --target gpu -- --lr '$(rm x)'");
  assert.ok(commands?.python.includes('arguments=["--lr", "$(rm x)"]'));
  assert.ok(commands?.http.includes("http://host/api/v1/workspaces/team%20a/runs/r1/rerun"));
  assert.equal(writeCommands({ ...run, spec: "" }, "team", "http://host"), undefined);
  const command = writeCommands({ ...run, spec: '{"command":["python","-V"]}' }, "team", "http://host");
  assert.equal(command?.shell, "");
  assert.ok(command?.python.includes('command=["python", "-V"]'));
});

test("a description has headings, lists, code and paragraphs", () => {
  const blocks = parseMarkdown("# Title\n\nFirst\nline\n- a\n- b\n\n1. one\n```\n<b>\n# no heading\n```\nend");
  assert.deepEqual(blocks.map((block) => block.kind), ["heading", "paragraph", "list", "list", "code", "paragraph"]);
  assert.deepEqual(blocks[4], { kind: "code", text: "<b>\n# no heading" });
  assert.equal(blocks[2]?.kind === "list" && blocks[2].items.length, 2);
  assert.deepEqual(parseMarkdown("```\nopen"), [{ kind: "code", text: "open" }]);
});

test("only web addresses become links, and HTML stays text", () => {
  assert.deepEqual(parseInline("**b** `c` *i* [x](https://a.b)"), [
    { kind: "bold", text: "b" },
    { kind: "text", text: " " },
    { kind: "code", text: "c" },
    { kind: "text", text: " " },
    { kind: "italic", text: "i" },
    { kind: "text", text: " " },
    { kind: "link", text: "x", href: "https://a.b" },
  ]);
  for (const wrong of ["[x](javascript:alert(1))", "[x](data:text/html,a)", "<a href=javascript:x>", "[x](//evil)"]) {
    assert.ok(parseInline(wrong).every((each) => each.kind === "text"), wrong);
  }
  assert.deepEqual(parseInline("see http://a.b/c?d=1")[1], { kind: "link", text: "http://a.b/c?d=1", href: "http://a.b/c?d=1" });
});
