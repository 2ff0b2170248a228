import assert from "node:assert/strict";
import { test } from "node:test";
import { parseLine, plainText } from "../src/pages/run/logs/ansi";
import { chooseRows, findRow, placeRows } from "../src/pages/run/logs/layout";
import { LogLines, showOverwritten } from "../src/pages/run/logs/lines";
import { findError, findLines, markMatches } from "../src/pages/run/logs/matches";
import { chooseLogs, formatRanks, groupLogs, nameLog, parseRanks } from "../src/pages/run/logs/ranks";
import { interleave, isEstimated, readTime } from "../src/pages/run/logs/times";

const encode = (text: string) => new TextEncoder().encode(text);
const texts = (log: LogLines) => [...log.lines.map((each) => each.text), ...(log.incomplete ? [log.incomplete.text] : [])];

test("a log is the same lines with the same offsets however its bytes are cut into ranges", () => {
  const text = "first\nzweite Zeile: ö € 😀\n\n10%\r50%\r100%\nwindows\r\nlast without an end: €";
  const bytes = encode(text);
  const expected = ["first", "zweite Zeile: ö € 😀", "", "100%", "windows", "last without an end: €"];
  let offsets: number[] | undefined;
  for (let size = 1; size <= bytes.length; size += 1) {
    const log = new LogLines(0, false);
    for (let at = 0; at < bytes.length; at += size) log.append(bytes.subarray(at, at + size));
    assert.deepEqual(texts(log), expected);
    assert.equal(log.end, bytes.length);
    const found = log.lines.map((each) => each.offset);
    assert.deepEqual(found, (offsets ??= found));
    assert.equal(log.incomplete?.offset, bytes.lastIndexOf(10) + 1);
  }
});

test("a character that is torn by the end of a range is not shown until it is whole", () => {
  const log = new LogLines(0, false);
  const bytes = encode("a😀");
  log.append(bytes.subarray(0, 3));
  assert.equal(log.incomplete?.text, "a");
  log.append(bytes.subarray(3));
  assert.equal(log.incomplete?.text, "a😀");
});

test("a log that is opened in its middle begins with a whole line, and grows upwards without gaps or doubles", () => {
  const all = Array.from({ length: 500 }, (_, number) => `line ${number} ${"ä€😀".repeat(number % 7)}`);
  const bytes = encode(all.join("\n") + "\n");
  for (const size of [40, 97, 1000]) {
    const middle = Math.floor(bytes.length / 2);
    const log = new LogLines(middle, true);
    log.append(bytes.subarray(middle));
    assert.equal(log.firstNumber, undefined);
    while (log.start > 0) log.prepend(bytes.subarray(Math.max(0, log.start - size), log.start));
    assert.deepEqual(texts(log).join("").replace(/\s/g, ""), all.join("").replace(/\s/g, ""));
    if (size > 97) {
      assert.deepEqual(texts(log), all);
      assert.equal(log.firstNumber, 1);
      for (const line of log.lines) assert.equal(bytes[line.offset - 1] ?? 10, 10);
    }
  }
});

test("lines that are forgotten can be read again, and numbers stay right", () => {
  const all = Array.from({ length: 100 }, (_, number) => `line ${number}`);
  const bytes = encode(all.join("\n"));
  const log = new LogLines(0, false);
  log.append(bytes);
  log.dropFirst(10);
  assert.deepEqual([log.lines[0]?.text, log.firstNumber], ["line 89", 90]);
  log.prepend(bytes.subarray(0, log.start));
  assert.deepEqual([log.lines[0]?.text, log.firstNumber, log.lines.length], ["line 0", 1, 99]);
  log.dropLast(20);
  assert.equal(log.incomplete, undefined);
  log.append(bytes.subarray(log.end));
  assert.deepEqual(texts(log), all);
});

test("a line without an end does not fill the memory, and neither does a progress bar", () => {
  const log = new LogLines(0, false);
  const piece = encode("é".repeat(10_000));
  for (let count = 0; count < 50; count += 1) log.append(piece);
  assert.ok(log.lines.length >= 10);
  assert.equal(texts(log).join(""), "é".repeat(500_000));
  const bar = new LogLines(0, false);
  for (let count = 0; count < 100_000; count += 1) bar.append(encode(`\r${count} of 100000 [=======>       ]`));
  assert.deepEqual(texts(bar), ["99999 of 100000 [=======>       ]"]);
  bar.append(encode("\nnext\n"));
  assert.deepEqual(bar.lines.map((each) => [each.offset > 1000, each.text]), [
    [false, "99999 of 100000 [=======>       ]"],
    [true, "next"],
  ]);
});

test("a line is found by any of its bytes", () => {
  const log = new LogLines(0, false);
  log.append(encode("one\ntwo\nthree"));
  assert.deepEqual([0, 3, 4, 7, 8, 12, 13, -1].map((at) => log.find(at)), [0, 0, 1, 1, 2, 2, -1, -1]);
});

test("overwritten text is not shown", () => {
  assert.equal(showOverwritten("10%\r50%\r100%"), "100%");
  assert.equal(showOverwritten("as on Windows\r"), "as on Windows");
});

test("colours of terminals become names of styles", () => {
  assert.deepEqual(parseLine("plain"), [{ text: "plain", style: "" }]);
  assert.deepEqual(parseLine("\x1b[1;31mbad\x1b[0m and \x1b[92mgood"), [
    { text: "bad", style: "ansi-bold ansi-red" },
    { text: " and ", style: "" },
    { text: "good", style: "ansi-green" },
  ]);
  assert.deepEqual(parseLine("\x1b[38;5;196mred\x1b[38;2;10;20;250mblue\x1b[39mnone"), [
    { text: "red", style: "ansi-red" },
    { text: "blue", style: "ansi-blue" },
    { text: "none", style: "" },
  ]);
  assert.deepEqual(parseLine("\x1b[41;37mwhite on red"), [{ text: "white on red", style: "ansi-on-red" }]);
  assert.deepEqual(parseLine("\x1b[mx"), [{ text: "x", style: "" }]);
});

test("no other control sequence is shown", () => {
  assert.equal(plainText("a\x1b[2K\x1b[1Gb\x1b]0;title\x07c\x1b(Bd\x08e\x00f\x9bg"), "abcdefg");
  assert.equal(plainText("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\"), "link");
  assert.deepEqual(parseLine("\x1b[999;x"), [{ text: "", style: "" }].slice(1));
  assert.equal(plainText("a\tb"), "a       b");
  assert.deepEqual(parseLine("\x1b[31mab\tc"), [{ text: "ab      c", style: "ansi-red" }]);
});

test("markup in a line stays text", () => {
  assert.deepEqual(parseLine("<img src=x onerror=alert(1)>"), [{ text: "<img src=x onerror=alert(1)>", style: "" }]);
});

test("what is searched for is marked, also across colours", () => {
  const marked = markMatches(parseLine("an \x1b[31mERR\x1b[0mOR, error"), "error");
  assert.deepEqual(marked.filter((each) => each.isMatch).map((each) => each.text), ["ERR", "OR", "error"]);
  assert.equal(marked.map((each) => each.text).join(""), "an ERROR, error");
  const lines = [{ offset: 3, text: "\x1b[1mLo\x1b[0mss", arrived: undefined }, { offset: 9, text: "x", arrived: undefined }];
  assert.deepEqual(findLines(lines, "loss"), [3]);
  assert.deepEqual(findLines(lines, ""), []);
});

test("the last traceback is the error", () => {
  const lines = ["ok", "Traceback (most recent call last):", "x", "[rank1]: Traceback (most recent call last):", "y"].map(
    (text, offset) => ({ offset, text, arrived: undefined }),
  );
  assert.equal(findError(lines), 3);
  assert.equal(findError(lines.slice(0, 1)), undefined);
});

test("times at the beginning of a line are read", () => {
  const day = Date.UTC(2026, 10, 17) / 1000;
  assert.equal(readTime("2026-11-17 10:00:01,250 INFO x"), day + 36_001.25);
  assert.equal(readTime("[2026-11-17T10:00:01.5Z] x"), day + 36_001.5);
  assert.equal(readTime("INFO 2026-11-17 10:00:01 x"), day + 36_001);
  assert.equal(readTime("10:00:01 x"), 36_001);
  assert.equal(readTime("epoch 3, 10:00:01"), undefined);
});

test("lines of several logs are ordered by their times, each log in its own order", () => {
  const make = (name: string, all: string[], from = 0, to = 10) => ({
    name,
    lines: all.map((text, offset) => ({ offset, text, arrived: undefined })),
    size: all.length,
    from,
    to,
  });
  const a = make("a", ["10:00:01 a1", "  more of a1", "10:00:03 a3"]);
  const b = make("b", ["10:00:02 b2", "10:00:04 b4"]);
  assert.deepEqual(interleave([a, b]).map((each) => each.line.text), ["10:00:01 a1", "  more of a1", "10:00:02 b2", "10:00:03 a3", "10:00:04 b4"]);
  const silent = [make("c", ["c1", "c2"]), make("d", ["d1", "d2", "d3", "d4"])];
  assert.equal(isEstimated([a.lines, b.lines]), false);
  assert.equal(isEstimated(silent.map((each) => each.lines)), true);
  assert.equal(isEstimated([silent[0]!.lines, []]), false);
  assert.deepEqual(interleave(silent).map((each) => each.line.text), ["c1", "d1", "d2", "c2", "d3", "d4"]);
  const live = make("e", []);
  live.lines.push({ offset: 0, text: "e1", arrived: 20 } as never, { offset: 1, text: "e2", arrived: 40 } as never);
  const other = make("f", []);
  other.lines.push({ offset: 0, text: "f1", arrived: 30 } as never);
  assert.deepEqual(interleave([live, other]).map((each) => each.line.text), ["e1", "f1", "e2"]);
});

test("the rows on the screen are found by their heights", () => {
  const places = placeRows([10, 100, 0, 30], 40);
  assert.deepEqual([...places], [0, 1, 4, 5, 6]);
  assert.deepEqual([0, 1, 3.9, 4, 99].map((at) => findRow(places, at)), [0, 1, 1, 2, 3]);
  assert.deepEqual(chooseRows(places, 1, 2, 0), { first: 1, last: 2 });
  assert.deepEqual(chooseRows(placeRows([], 0), 0, 10, 5), { first: 0, last: 0 });
});

test("ranks are written as ranges", () => {
  assert.deepEqual(parseRanks("0-2, 7,x,5-4", 9), [0, 1, 2, 7]);
  assert.deepEqual(parseRanks("0-999999", 3), [0, 1, 2, 3]);
  assert.equal(formatRanks([7, 0, 1, 2]), "0-2,7");
});

test("at first all ranks are shown, of very many the first one, and a log by its name alone", () => {
  const make = (count: number) =>
    groupLogs([
      { name: "attempt_1/70_driver_log_0.txt", identity: "a", size: 1, rank: 0, attempt: 1 },
      { name: "20_image_build_log.txt", identity: "s", size: 1, rank: null, attempt: null },
      ...Array.from({ length: count }, (_, rank) => ({
        name: `70_driver_log_${rank}.txt`, identity: `r${rank}`, size: 1, rank, attempt: null,
      })),
    ]);
  assert.equal(chooseLogs(make(3), "", "").length, 3);
  assert.deepEqual(chooseLogs(make(64), "", "").map((each) => each.rank), [0]);
  assert.equal(chooseLogs(make(64), "", "all").length, 64);
  assert.deepEqual(chooseLogs(make(3), "", "1").map((each) => each.rank), [1]);
  assert.deepEqual(chooseLogs(make(3), "20_image_build_log.txt", "1").map((each) => each.identity), ["s"]);
  assert.deepEqual(chooseLogs(make(0), "", "").map((each) => each.identity), ["a"]);
  assert.equal(nameLog(make(3).attempts[0]!), "Rank 0, attempt 1");
});
