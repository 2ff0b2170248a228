/** Folders of a datastore, which lists files only. */
import type { FileEntry } from "../../api/types";

export interface Folder {
  name: string;
  files: number;
  bytes: number;
}

export interface Contents {
  folders: Folder[];
  files: FileEntry[];
}

/** What lies directly in a folder, of all files at and below it. The empty text is the top. */
export function listFolder(files: readonly FileEntry[], folder: string): Contents {
  const start = folder ? `${folder}/` : "";
  const folders = new Map<string, Folder>();
  const own: FileEntry[] = [];
  for (const file of files) {
    if (!file.name.startsWith(start)) continue;
    const rest = file.name.slice(start.length);
    const slash = rest.indexOf("/");
    if (slash < 0) {
      own.push(file);
      continue;
    }
    const name = rest.slice(0, slash);
    const found = folders.get(name) ?? { name, files: 0, bytes: 0 };
    folders.set(name, { name, files: found.files + 1, bytes: found.bytes + file.size });
  }
  return { folders: [...folders.values()].sort((one, other) => (one.name < other.name ? -1 : 1)), files: own };
}

/** What a datastore is, from its address. */
export function describeStore(url: string): string {
  const scheme = /^([a-z0-9+]+):\/\//i.exec(url)?.[1]?.toLowerCase() ?? "";
  const kinds: Readonly<Record<string, string>> = {
    file: "Folder", s3: "S3 bucket", gs: "Google Cloud bucket", gcs: "Google Cloud bucket", az: "Azure container", abfs: "Azure container",
    abfss: "Azure container", http: "Web address", https: "Web address", sftp: "Folder over SSH", memory: "Memory",
  };
  return scheme ? kinds[scheme] ?? scheme : "Folder";
}

/** Where a source of a dataset lies: in a datastore, or at an address. */
export function describeSource(source: { path: string; store?: string }): string {
  return source.store ? `${source.store}: ${source.path || "everything"}` : source.path;
}

/** The folder before the first wildcard of a path, which can be browsed. */
export function folderBefore(path: string): string {
  const parts = path.split("/").filter(Boolean);
  const wild = parts.findIndex((part) => /[*?[]/.test(part));
  return (wild < 0 ? parts : parts.slice(0, wild)).join("/");
}

/** Whether a file belongs to a path of a dataset: the file itself, one below it, or one that fits its wildcards. */
export function belongsTo(path: string, file: string): boolean {
  const wanted = path.replace(/^\/+|\/+$/g, "");
  if (!/[*?[]/.test(wanted)) return !wanted || file === wanted || file.startsWith(`${wanted}/`);
  const pattern = wanted.replace(/[.+^${}()|\\]/g, "\\$&").replaceAll("**/", "\0").replaceAll("*", "[^/]*").replaceAll("?", "[^/]").replaceAll("\0", "(?:.*/)?");
  try {
    return new RegExp(`^${pattern}$`).test(file);
  } catch {
    return true;
  }
}
