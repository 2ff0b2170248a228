/** Which models a search shows, and code that uses one. */
import type { ModelRecord } from "../../api/types";

/** Models that have every word somewhere in their name, framework, description, experiment or tags. */
export function searchModels(models: readonly ModelRecord[], text: string): ModelRecord[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return models.filter((model) => {
    const tags = Object.entries(model.tags).map(([name, value]) => `${name}=${value}`);
    const all = [model.name, model.framework, model.description, model.experiment, ...tags].join("\n").toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

export interface ModelFile {
  path: string;
  digest: string;
  size: number;
}

/** The files in the list of a model, as the server sends it. */
export function readFiles(list: unknown): ModelFile[] {
  const files = (list as { files?: unknown } | null)?.files;
  return Array.isArray(files) ? files.filter((each) => typeof each?.path === "string" && typeof each?.digest === "string") : [];
}

/** A text as Python writes it. */
export function quote(text: string): string {
  return JSON.stringify(text);
}

export function writeLoading(workspace: string, server: string, model: ModelRecord): string {
  return [
    "from azureml.core import Model, Workspace",
    "",
    `workspace = Workspace.get(${quote(workspace)}, server=${quote(server)})`,
    `model = Model(workspace, ${quote(model.name)}, version=${model.version})`,
    `path = model.download(target_dir=".", exist_ok=True)  # ${model.entry.replace(/[\r\n]/g, " ")}`,
  ].join("\n");
}

export function writeScoring(model: ModelRecord): string {
  return `path = Model.get_model_path(${quote(model.name)}, version=${model.version})`;
}
