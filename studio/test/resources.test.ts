import assert from "node:assert/strict";
import { test } from "node:test";
import { belongsTo, describeSource, describeStore, folderBefore, listFolder } from "../src/pages/data/folders";
import { readContents, searchBuilds } from "../src/pages/environments/definition";
import { describeEvents, describePlan, describeRuns } from "../src/pages/settings/channels";
import { describeChange, describeDays, describeObject, describeResult, describeScope, findState } from "../src/pages/settings/words";

test("files become folders", () => {
  const files = ["a/b/c.csv", "a/b/d.csv", "a/e.txt", "ab.txt"].map((name) => ({ name, size: 2, modified_at: 0 }));
  assert.deepEqual(listFolder(files, "a"), { folders: [{ name: "b", files: 2, bytes: 4 }], files: [files[2]] });
  assert.deepEqual(listFolder(files, "").folders.map((each) => each.name), ["a"]);
  assert.deepEqual(listFolder(files, "").files.map((each) => each.name), ["ab.txt"]);
});

test("stores and sources are described", () => {
  assert.equal(describeStore("s3://bucket/x"), "S3 bucket");
  assert.equal(describeStore("/data"), "Folder");
  assert.equal(describeStore("weird+x://y"), "weird+x");
  assert.equal(describeSource({ path: "", store: "main" }), "main: everything");
  assert.equal(folderBefore("customers/2024/*.csv"), "customers/2024");
});

test("wildcards choose files", () => {
  assert.ok(belongsTo("customers/*.csv", "customers/a.csv"));
  assert.ok(!belongsTo("customers/*.csv", "customers/x/a.csv"));
  assert.ok(!belongsTo("customers/*.csv", "customers/README"));
  assert.ok(belongsTo("**/*.csv", "a/b/c.csv"));
  assert.ok(belongsTo("customers", "customers/a.csv"));
  assert.ok(!belongsTo("customers", "customers2/a.csv"));
  assert.ok(belongsTo("", "a"));
});

test("packages are read from any definition", () => {
  const definition = { python: { condaDependencies: { dependencies: ["python=3.11", "pip", "numpy", { pip: ["torch==2.3"] }] } }, environmentVariables: { A: "1" } };
  assert.deepEqual(readContents(definition), { python: "3.11", conda: ["numpy"], pip: ["torch==2.3"], variables: ["A"], image: "", isUserManaged: false });
  assert.deepEqual(readContents({ python: 5, docker: [] }).pip, []);
  assert.equal(searchBuilds([{ name: "a.1", packages: ["torch==2"], users: [] }, { name: "b.1", packages: [], users: ["service x"] }], "torch").length, 1);
});

test("tokens and changes are described", () => {
  assert.equal(describeScope({ workspace: "team", role: "reader", run_id: null }), "as reader in team");
  assert.equal(describeScope({ workspace: null, role: null, run_id: null }), "everything that its user may do");
  assert.equal(findState({ revoked_at: 1, expires_at: null }, 5), "revoked");
  assert.equal(findState({ revoked_at: null, expires_at: 4 }, 5), "expired");
  assert.equal(findState({ revoked_at: null, expires_at: null }, 5), "valid");
  assert.equal(describeDays(86_400 * 3, 0), "in 3 days");
  assert.equal(describeDays(0, 86_400), "1 day ago");
  assert.equal(describeChange({ operation: "", method: "PUT", route: "/api/v1/workspaces/{workspace}/members/{user}" }), "PUT /members/{user}");
  assert.equal(describeObject("/api/v1/workspaces/team/members/ann"), "members/ann");
  assert.equal(describeObject("/api/v1/users/ann"), "users/ann");
  assert.equal(describeObject("/api/v1/workspaces/team/operations/runs.submit"), "");
  assert.equal(describeResult(403).text, "refused");
  assert.equal(describeResult(null).text, "not finished");
});

test("channels say when they tell, and of what", () => {
  assert.equal(describeEvents(["failed", "completed", "hung", "canceled"]), "every end");
  assert.equal(describeEvents(["hung", "failed"]), "failed, hung");
  assert.equal(describeRuns({ owner: "", experiment: "", only_chosen: false }, "ann"), "all runs");
  assert.equal(describeRuns({ owner: "ann", experiment: "mnist", only_chosen: true }, "ann"), "your runs of the experiment mnist that name it");
  assert.equal(describeRuns({ owner: "bob", experiment: "", only_chosen: false }, "ann"), "the runs of bob");
});

test("a dry run says how many runs would go", () => {
  const kept = { run_id: "a", is_kept: true, reason: "newest" };
  assert.equal(describePlan({ verdicts: [kept] }), "Nothing would be deleted: all 1 run are kept.");
  assert.equal(describePlan({ verdicts: [kept, { ...kept, is_kept: false }] }), "1 run would be deleted, and 1 run kept.");
});
