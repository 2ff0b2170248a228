// Builds the studio into the Python package, byte for byte the same on every machine; `--test` runs the unit tests.
import { createHash } from "node:crypto";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const common = {
  absWorkingDir: here,
  bundle: true,
  jsx: "automatic",
  jsxImportSource: "preact",
  target: "es2022",
  logLevel: "warning",
};

/** The page around the script. It has no text of its own, so that nothing appears before the script has run. */
function writePage(folder) {
  const title = "<title>Trainmaster</title>";
  const icon = `<link rel="icon" href="/assets/${folder}/icon.svg" type="image/svg+xml">`;
  const style = `<link rel="stylesheet" href="/assets/${folder}/studio.css">`;
  const script = `<script type="module" src="/assets/${folder}/studio.js"></script>`;
  const view = '<meta name="viewport" content="width=device-width, initial-scale=1">';
  const head = `<meta charset="utf-8">${view}<meta name="color-scheme" content="light dark">${title}${icon}${style}`;
  return `<!doctype html>\n<html lang="en"><head>${head}${script}</head><body><div id="studio"></div></body></html>\n`;
}

async function buildPages(destination) {
  const built = await build({
    ...common,
    entryPoints: { studio: "src/main.tsx" },
    outdir: "out",
    format: "esm",
    minify: true,
    legalComments: "none",
    write: false,
  });
  const files = built.outputFiles.map((file) => [file.path.split(/[\\/]/).pop(), file.contents]);
  files.push(["icon.svg", readFileSync(join(here, "src/icon.svg"))]);
  files.sort(([a], [b]) => (a < b ? -1 : 1));
  const digest = createHash("sha256");
  for (const [name, contents] of files) digest.update(name).update("\0").update(contents);
  const folder = digest.digest("hex").slice(0, 12);
  files.push(["index.html", Buffer.from(writePage(folder))]);

  mkdirSync(destination, { recursive: true });
  for (const old of readdirSync(destination)) rmSync(join(destination, old), { recursive: true });
  const making = mkdtempSync(join(destination, ".making-"));
  let bytes = 0;
  for (const [name, contents] of files) {
    writeFileSync(join(making, name), contents);
    bytes += gzipSync(contents).length;
  }
  chmodSync(making, 0o755);
  renameSync(making, join(destination, folder));
  console.log(`${join(destination, folder)}: ${(bytes / 1000).toFixed(1)} kB gzipped`);
}

async function runTests() {
  const tests = readdirSync(join(here, "test")).filter((name) => name.endsWith(".test.ts"));
  const folder = mkdtempSync(join(tmpdir(), "studio-tests-"));
  try {
    await build({
      ...common,
      entryPoints: tests.map((name) => join("test", name)),
      outdir: folder,
      format: "esm",
      platform: "node",
      outExtension: { ".js": ".mjs" },
    });
    const files = readdirSync(folder).map((name) => join(folder, name));
    process.exitCode = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status ?? 1;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (process.argv[2] === "--test") await runTests();
else await buildPages(resolve(process.argv[2] ?? join(here, "../src/trainmaster/server/studio/built")));
