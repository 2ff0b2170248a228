import assert from "node:assert/strict";
import { test } from "node:test";
import { findWanted, suggest } from "../src/pages/runs/completion";
import {
  defaultColumns, describeColumn, fieldsOf, formatColumns, formatField, joinFilters, matchIds, nextOrder, parseColumn,
  parseColumns, parseWidths,
} from "../src/pages/runs/fields";
import { RunList } from "../src/pages/runs/run_list";
import { countItems, findItem, findRanges, makeSections } from "../src/pages/runs/sections";
import { chooseDiffering } from "../src/pages/runs/differing";
import { describeRemoval } from "../src/pages/runs/removal_text";
import { drawLine } from "../src/pages/runs/sparkline";
import { findWindow, scrollTo } from "../src/components/window";

const NAMES = { arguments: ["lr", "status", "my arg"], metrics: ["loss", "val loss"], tags: ["kind"], properties: [] };

test("columns of an address are read and written as they were", () => {
  const text = 'name,lr,metric.loss.min,metric."val, \\"loss\\"".max,tag.kind,~loss,arg.status';
  const columns = parseColumns(text);
  assert.equal(formatColumns(columns), text);
  assert.deepEqual(columns.map((each) => each.kind), ["column", "argument", "metric", "metric", "tag", "line", "argument"]);
  assert.equal(columns[3]?.name, 'val, "loss"');
  assert.equal(columns[3]?.part, "max");
  assert.equal(parseColumn("metric.a.b").name, "a.b");
  assert.deepEqual(parseColumns("lr,lr,,"), [parseColumn("lr")]);
});

test("a field is written so that the filter language reads it", () => {
  assert.equal(formatField("metric", "val loss", "min"), 'metric."val loss".min');
  assert.equal(formatField("tag", 'a"b'), 'tag."a\\"b"');
  assert.equal(formatField("line", "loss"), "~loss");
  assert.equal(formatField("metric", "train/loss", "last"), 'metric."train/loss"');
  assert.deepEqual(describeColumn(parseColumn("metric.loss.min")), { label: "loss", note: "min" });
});

test("only the fields that are shown are asked for", () => {
  const fields = fieldsOf(parseColumns("duration,~loss,lr,id"));
  assert.ok(fields.includes("lr"));
  assert.ok(!fields.includes("duration") && !fields.includes("~loss") && !fields.includes("user"));
  assert.equal(new Set(fields).size, fields.length);
});

test("the default columns have a usual metric, and none of a thousand unknown ones", () => {
  assert.ok(formatColumns(defaultColumns(["accuracy", "loss"])).endsWith("~loss,metric.loss,metric.accuracy"));
  assert.ok(!formatColumns(defaultColumns(Array.from({ length: 1000 }, (_, n) => `m${n}`))).includes("metric"));
});

test("filters are joined, and values quoted", () => {
  assert.equal(joinFilters("a = 1 or b = 2", "c = 3"), "(a = 1 or b = 2) and c = 3");
  assert.equal(joinFilters("", "c = 3"), "c = 3");
  assert.equal(matchIds(["a", 'b"']), 'id in ("a", "b\\"")');
});

test("a header sorts up, down and not at all", () => {
  const column = parseColumn("lr");
  assert.equal(nextOrder("", column), "lr");
  assert.equal(nextOrder("lr", column), "lr desc");
  assert.equal(nextOrder("lr desc", column), "");
  assert.equal(nextOrder("created", column), "lr");
  assert.deepEqual(parseWidths("120,,9"), [120, 0, 0]);
});

test("a filter is completed by what may come next", () => {
  const kinds = (text: string) => findWanted(text).kind;
  assert.equal(kinds(""), "field");
  assert.equal(kinds("lo"), "field");
  assert.equal(kinds("lr "), "operator");
  assert.equal(kinds("lr <"), "value");
  assert.equal(kinds("lr < 0.1 "), "link");
  assert.equal(kinds("lr < 0.1 and "), "field");
  assert.equal(kinds("not (status in (Failed, "), "value");
  assert.equal(kinds("status in (Failed) "), "link");
  assert.equal(kinds("tag.kind is set "), "link");
  assert.equal(findWanted('tag.kind = "ba').prefix, '"ba');
  assert.equal(findWanted("tag.kind = ").field, "tag.kind");
  assert.equal(findWanted('metric."val loss".mi').start, 0);
});

test("suggestions are written as the language reads them", () => {
  const texts = (text: string, values: string[] = []) => suggest(findWanted(text), NAMES, values).map((each) => each.text);
  assert.deepEqual(texts("lo").slice(0, 1), ["metric.loss "]);
  assert.ok(texts("metric.").includes('metric."val loss" '));
  assert.ok(texts("arg").includes("arg.status "));
  assert.deepEqual(texts("status = Fai", ["Failed", "Completed"]), ["Failed "]);
  assert.deepEqual(texts("tag.kind = ", ["my base"]), ['"my base" ']);
  assert.ok(texts("mnist").includes('name ~* "*mnist*" '));
});

const row = (id: string, created = 0) => ({ id, created });

test("a list reads the pages in view, by cursor where it can", () => {
  const list = new RunList();
  list.total = 1000;
  assert.deepEqual(list.findMissing(0, 10), { start: 0, limit: 100, cursor: "" });
  list.put(0, Array.from({ length: 100 }, (_, n) => row(`r${n}`)), "next");
  assert.equal(list.findMissing(0, 50), undefined);
  assert.deepEqual(list.findMissing(90, 110), { start: 100, limit: 100, cursor: "next" });
  assert.deepEqual(list.findMissing(950, 970), { start: 900, limit: 100, cursor: "" });
  assert.equal(list.length, 1000);
});

test("new runs move the others down, and runs that are gone up", () => {
  const list = new RunList();
  list.put(0, [row("c", 3), row("b", 2), row("a", 1)], "");
  assert.equal(list.length, 3);
  assert.equal(list.insertByAge(row("d", 4)), 0);
  assert.equal(list.insertByAge(row("x", 2.5)), 2);
  assert.deepEqual(list.known.map((each) => each.id), ["d", "c", "x", "b", "a"]);
  assert.equal(list.remove("c"), 1);
  assert.equal(list.find("a"), 3);
  assert.equal(list.length, 4);
  list.update({ id: "a", created: 1, status: "Failed" });
  assert.equal(list.get(3)?.["status"], "Failed");
});

test("a cursor stays with its page when runs are added before it", () => {
  const list = new RunList();
  list.total = 300;
  list.put(0, Array.from({ length: 100 }, (_, n) => row(`r${n}`, 1000 - n)), "next");
  list.insertByAge(row("new", 5000));
  assert.deepEqual(list.findMissing(99, 120), { start: 101, limit: 100, cursor: "next" });
  assert.equal(list.length, 301);
});

test("groups have headers, and only open ones have rows", () => {
  const sections = makeSections("lr < 1", "tag.kind", ["base", "big"], new Set(["base"]));
  assert.deepEqual(sections.map((each) => each.isOpen), [true, false, false]);
  assert.equal(sections[0]?.filter, '(lr < 1) and tag.kind = "base"');
  assert.equal(sections[2]?.filter, "(lr < 1) and tag.kind is not set");
  sections[0]?.list.put(0, [row("a"), row("b")], "");
  assert.equal(countItems(sections), 5);
  assert.equal(findItem(sections, 0)?.index, undefined);
  assert.equal(findItem(sections, 2)?.row?.id, "b");
  assert.equal(findItem(sections, 3)?.section.title, "big");
  assert.deepEqual(findRanges(sections, 1, 3).map((each) => [each.section.key, each.first, each.last]), [["base", 0, 2]]);
});

test("the rows in view are drawn, however long the table is", () => {
  const near = findWindow(3300, 330, 1000, 33);
  assert.ok(near.first <= 100 && near.last >= 110);
  assert.equal(near.above + near.below + (near.last - near.first) * 33, 33_000);
  const count = 10_000_000;
  const end = findWindow(12_000_000 - 330, 330, count, 33);
  assert.equal(end.last, count);
  assert.equal(end.above + end.below + (end.last - end.first) * 33, 12_000_000);
});

test("a row is brought into view with the least movement", () => {
  assert.equal(scrollTo(5, 0, 330, 1000, 33), 0);
  assert.equal(scrollTo(10, 0, 330, 1000, 33), 33);
  assert.equal(scrollTo(2, 330, 330, 1000, 33), 66);
});

test("what is deleted is said", () => {
  const removal = { run_ids: ["a", "b"], children: 3, bytes: 1500, left: [] };
  assert.equal(
    describeRemoval(removal, ["one", "two"], 1),
    "one, two, with 3 child runs: metrics, logs and 1.5 kB of files will be deleted. This cannot be undone. "
      + "1 run of the selection has not ended and will stay.",
  );
});

test("only columns that differ: those chosen, and all arguments and tags that do", () => {
  const names = { arguments: ["lr"], metrics: ["loss"], tags: ["kind"], properties: [] };
  const rows = [{ id: "a", user: "ada", target: "x" }, { id: "b", user: "ada", target: "y" }];
  const chosen = parseColumns("name,user,target,seed,metric.loss,metric.acc,~loss");
  assert.equal(formatColumns(chooseDiffering(chosen, names, rows)), "name,target,arg.lr,tag.kind,metric.loss,~loss");
});

test("a small chart has gaps, and one value is a dot", () => {
  assert.equal(drawLine([0, 1]), "M2 20L98 2");
  assert.equal(drawLine([0, null, 1]), "M2 20M98 2");
  assert.equal(drawLine([5]), "M2 11h0.01");
  assert.equal(drawLine([null]), "");
});
