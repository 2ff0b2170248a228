import assert from "node:assert/strict";
import { test } from "node:test";
import type { QueueEntry, TargetRecord } from "../src/api/types";
import { assignNodes, describeSize, describeTarget, describeUse, isCluster, isUnlimited, numberRuns, parseAmount, shareOf, summarize } from "../src/pages/queue/compute";

const target = (engine: string, options: Record<string, unknown> = {}): TargetRecord => ({
  name: "t", engine, nodes: 2, cpus_per_node: 1, gpus_per_node: 0, options, created_at: 0,
});
const run = (run_id: string, nodes: number[], status = "Running"): QueueEntry =>
  ({ run_id, nodes, status, waiting_for: "", target: "t" }) as unknown as QueueEntry;

test("every node has the runs that use it", () => {
  const nodes = assignNodes({ nodes: 3 }, [run("a", [2]), run("b", [0, 2, 7])]);
  assert.deepEqual(nodes.map((node) => node.runs.map((each) => each.run_id)), [["b"], [], ["a", "b"]]);
  assert.deepEqual([...numberRuns(nodes)], [["b", 0], ["a", 1]]);
});

test("targets are described in words", () => {
  assert.equal(describeTarget(target("slurm", { partition: "gpu" })), "Slurm cluster, partition gpu");
  assert.equal(describeTarget(target("ssh", { hosts: ["a", { address: "b" }] })), "2 machines over SSH: a, b");
  assert.equal(describeTarget(target("ssh", { address: "a" })), "Machine over SSH: a");
  assert.equal(describeSize({ ...target("local"), gpus_per_node: 4 }), "2 nodes, each with 1 CPU and 4 GPUs");
  const prod = target("kubernetes", { context: "prod", namespace: "train" });
  assert.equal(describeTarget(prod), "Kubernetes cluster, context prod, namespace train");
  assert.equal(describeSize({ ...prod, nodes: 1000 }), "As many nodes as the cluster gives, each with 1 CPU");
  assert.equal(describeSize({ ...prod, nodes: 4, cpus_per_node: 0 }), "4 nodes");
  assert.equal(describeSize({ ...prod, nodes: 0 }), "Only recorded: it is not known how to reach it");
  assert.deepEqual([isUnlimited({ ...prod, nodes: 1000 }), isUnlimited(prod), isCluster(prod)], [true, false, true]);
});

test("the queue is summarized", () => {
  assert.equal(summarize([]), "Nothing runs or waits.");
  assert.equal(summarize([run("a", [0]), run("b", [], "Queued"), run("c", [], "Queued")]), "1 run is executing, 2 wait.");
  assert.equal(summarize([run("b", [], "Queued")]), "1 run waits.");
});

test("quotas have a use and a share", () => {
  const report = { quota: { owner: "ann", runs: 4, nodes: null, gpus: 0, disk_bytes: 2e9 }, runs: 2, nodes: 3, gpus: 0, disk_bytes: 5e9 };
  assert.equal(describeUse(report, "runs"), "2 of 4");
  assert.equal(describeUse(report, "nodes"), "3");
  assert.equal(describeUse(report, "disk_bytes"), "5.0 GB of 2.0 GB");
  assert.deepEqual([shareOf(report, "runs"), shareOf(report, "nodes"), shareOf(report, "gpus"), shareOf(report, "disk_bytes")], [0.5, undefined, 1, 1]);
});

test("amounts are read as people write them", () => {
  assert.equal(parseAmount("disk_bytes", "10 GB"), 10e9);
  assert.equal(parseAmount("disk_bytes", "1.5TB"), 1.5e12);
  assert.equal(parseAmount("runs", "3"), 3);
  assert.equal(parseAmount("runs", ""), null);
  for (const wrong of ["3 GB", "-1", "many", "1.5"]) assert.equal(parseAmount("runs", wrong), undefined);
});
