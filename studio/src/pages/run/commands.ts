/** Commands that repeat a run, to copy. Pure. */
import type { RunRecord } from "../../api/types";
import { readSpec } from "./run_words";

export interface Commands {
  restore: string;
  shell: string;
  python: string;
  http: string;
}

/** A word as a POSIX shell reads it. */
export function quoteShell(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

/** A text as Python reads it; the strings of JSON are strings of Python. */
export function quotePython(text: string): string {
  return JSON.stringify(text);
}

/** Undefined for a run without a job, which only its program can repeat. */
export function writeCommands(run: RunRecord, workspace: string, origin: string): Commands | undefined {
  const spec = readSpec(run.spec);
  if (!spec) return undefined;
  const words = spec.arguments ?? [];
  const api = `${origin}/api/v1/workspaces/${encodeURIComponent(workspace)}/runs/${encodeURIComponent(run.id)}`;
  const restore = [
    "import shutil",
    "from trainmaster import Run, Workspace",
    "",
    "workspace = Workspace.from_config()",
    `run = Run.get(workspace, ${quotePython(run.id)})`,
    'shutil.unpack_archive(run.restore_snapshot(), "code")',
  ].join("\n");
  const script = spec.script ?? "";
  const submit = ["trainmaster", "submit", "code", script, "--experiment", run.experiment, "--target", run.target || "local"];
  const shell = script ? [...submit, ...(words.length ? ["--", ...words] : [])].map(quoteShell).join(" ") : "";
  const what = script
    ? [`    script=${quotePython(script)},`, `    arguments=[${words.map(quotePython).join(", ")}],`]
    : [`    command=[${(spec.command ?? []).map(quotePython).join(", ")}],`];
  const python = [
    "from trainmaster import Experiment, Run, ScriptRunConfig, Workspace",
    "",
    "workspace = Workspace.from_config()",
    `run = Run.get(workspace, ${quotePython(run.id)})`,
    "config = ScriptRunConfig(",
    '    source_directory="code",',
    ...what,
    `    compute_target=${quotePython(run.target || "local")},`,
    "    environment=run.get_environment(),",
    ")",
    `again = Experiment(workspace, ${quotePython(run.experiment)}).submit(config)`,
  ].join("\n");
  const http = [
    "curl --request POST",
    '--header "Authorization: Bearer $TRAINMASTER_TOKEN"',
    "--header 'Content-Type: application/json'",
    `--data '{}' ${quoteShell(`${api}/rerun`)}`,
  ].join(" \\\n  ");
  return { restore, shell, python, http };
}
