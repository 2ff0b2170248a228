/** Names of files as a tree whose folders open and close. Pure. */

export interface FileItem {
  readonly name: string;
  readonly size: number;
}

export interface TreeRow {
  /** Of a folder it ends with "/". */
  readonly path: string;
  readonly label: string;
  readonly depth: number;
  readonly isFolder: boolean;
  readonly isOpen: boolean;
  /** Of a folder, of all files in it. */
  readonly size: number;
  readonly count: number;
}

interface Folder {
  readonly path: string;
  readonly label: string;
  readonly folders: Map<string, Folder>;
  readonly files: FileItem[];
  size: number;
  count: number;
}

/** Folders of a tree with fewer files than this are open at first. */
const MOST_OPEN = 100;

function makeFolder(path: string, label: string): Folder {
  return { path, label, folders: new Map(), files: [], size: 0, count: 0 };
}

/** The tree of files whose names contain a text, whatever its case. */
export function makeTree(files: readonly FileItem[], filter = ""): Folder {
  const wanted = filter.trim().toLowerCase();
  const top = makeFolder("", "");
  for (const file of files) {
    if (wanted && !file.name.toLowerCase().includes(wanted)) continue;
    const parts = file.name.split("/");
    let folder = top;
    count(folder, file);
    for (let depth = 0; depth < parts.length - 1; depth += 1) {
      const label = parts[depth]!;
      let below = folder.folders.get(label);
      if (!below) {
        below = makeFolder(`${folder.path}${label}/`, label);
        folder.folders.set(label, below);
      }
      folder = below;
      count(folder, file);
    }
    folder.files.push(file);
  }
  return top;
}

function count(folder: Folder, file: FileItem): void {
  folder.size += file.size;
  folder.count += 1;
}

/**
 * The rows that are visible. `changed` are the folders that the user opened or closed, which are otherwise open if
 * there are few files or a filter, or if they lead to the `chosen` file.
 */
export function listRows(tree: Folder, changed: ReadonlySet<string>, chosen: string, isFiltered: boolean): TreeRow[] {
  const rows: TreeRow[] = [];
  const areOpen = isFiltered || tree.count <= MOST_OPEN;
  const visit = (folder: Folder, depth: number) => {
    for (const below of sortByName([...folder.folders.values()], (each) => each.label)) {
      const isOpen = (areOpen || chosen.startsWith(below.path)) !== changed.has(below.path);
      rows.push({ path: below.path, label: below.label, depth, isFolder: true, isOpen, size: below.size, count: below.count });
      if (isOpen) visit(below, depth + 1);
    }
    for (const file of sortByName(folder.files, (each) => each.name)) {
      const label = file.name.slice(file.name.lastIndexOf("/") + 1);
      rows.push({ path: file.name, label, depth, isFolder: false, isOpen: false, size: file.size, count: 1 });
    }
  };
  visit(tree, 0);
  return rows;
}

/** Numbers within names count as numbers: step_9 comes before step_10. */
function sortByName<T>(items: T[], nameOf: (item: T) => string): T[] {
  return items.sort((a, b) => collator.compare(nameOf(a), nameOf(b)));
}

const collator = new Intl.Collator("en", { numeric: true });
