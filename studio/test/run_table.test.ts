import assert from "node:assert/strict";
import { test } from "node:test";
import { type Query, RunTable } from "../src/pages/runs/run_table";

const QUERY: Query = {
  workspace: "team", filter: "", order: "", group: "", open: undefined, children: false, archived: false, fields: ["id"], lines: [],
};
const EXPERIMENTS = ["text", "vision"];

interface Request {
  address: URL;
  answer: () => void;
}

/** A server with one run of each experiment, whose answers wait until they are let go. */
class SlowServer {
  readonly waiting: Request[] = [];

  constructor() {
    globalThis.fetch = ((address: string, { signal }: RequestInit) => new Promise<Response>((resolve, reject) => {
      const url = new URL(address, "http://studio");
      const answer = () => resolve(new Response(JSON.stringify(this.find(url))));
      signal?.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")));
      this.waiting.push({ address: url, answer });
    })) as typeof fetch;
  }

  private find(url: URL): unknown {
    if (url.pathname.endsWith("/values")) return { values: EXPERIMENTS };
    const filter = url.searchParams.get("filter") ?? "";
    const rows = EXPERIMENTS.filter((each) => !filter || filter.includes(each)).map((id) => ({ id }));
    return { rows, cursor: "", total: rows.length };
  }

  /** Let all requests go until no more come. */
  async answerAll(): Promise<void> {
    for (let quiet = 0; quiet < 3; quiet += 1) {
      if (this.waiting.length) quiet = 0;
      for (const each of this.waiting.splice(0)) each.answer();
      await new Promise((done) => setTimeout(done));
    }
  }
}

const keysOf = (table: RunTable): string[] => table.sections.map((each) => each.key);

function makeTable(): RunTable {
  return new RunTable(() => undefined, () => undefined);
}

test("groups that are still being read are shown when other columns are asked for meanwhile", async () => {
  const server = new SlowServer();
  const table = makeTable();
  void table.show(QUERY);
  await server.answerAll();
  assert.deepEqual(keysOf(table), [""]);
  void table.show({ ...QUERY, group: "experiment" });
  void table.show({ ...QUERY, group: "experiment", fields: ["id", "metric.loss"] });
  await server.answerAll();
  assert.deepEqual(keysOf(table), EXPERIMENTS);
  table.stop();
});

test("a group that is opened while everything is read again stays open", async () => {
  const server = new SlowServer();
  const table = makeTable();
  void table.show({ ...QUERY, group: "experiment" });
  await server.answerAll();
  assert.deepEqual(table.sections.map((each) => each.isOpen), [true, false]);
  table.reload();
  table.toggle(table.sections[1]!, true);
  await server.answerAll();
  assert.deepEqual(table.sections.map((each) => each.isOpen), [true, true]);
  assert.deepEqual(table.sections[1]?.list.known, [{ id: "vision" }]);
  table.stop();
});

test("a feed that begins while rows are read makes them read again", async () => {
  const server = new SlowServer();
  const table = makeTable();
  void table.show(QUERY);
  table.note({ version: "1", whole: false, runs: [] });
  const first = server.waiting.splice(0);
  for (const each of first) each.answer();
  await new Promise((done) => setTimeout(done));
  assert.equal(server.waiting.filter((each) => each.address.pathname.endsWith("/runs")).length, 1);
  await server.answerAll();
  table.stop();
});
