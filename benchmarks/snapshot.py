"""How long a snapshot takes.

- A second snapshot of 50,000 unchanged files, against `git status` in the same folder.
- The first and the second snapshot of 20 files, and laying them out as a working folder.

Run `python benchmarks/snapshot.py [--json] [--files N] [--rounds N]`, or call `measure()`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainmaster.job.agent.layout import lay_out
from trainmaster.snapshots import git_properties, take_snapshot

FILES_PER_FOLDER = 100
# Files younger than this are rightly not trusted by the cache.
SETTLE_SECONDS = 0.3


def measure(files: int = 50_000, rounds: int = 11) -> dict[str, Any]:
    """Measure everything; seconds, medians of rounds in which the candidates take turns."""
    with tempfile.TemporaryDirectory(prefix="snapshot-benchmark-") as folder:
        large = _large_tree(Path(folder), files, rounds)
        small = _small_tree(Path(folder), rounds)
    return {"large": large, "small": small}


def _large_tree(folder: Path, files: int, rounds: int) -> dict[str, Any]:
    source, workspace = folder / "large", folder / "large-workspace"
    _make_tree(source, files)
    _git(source, "init", "-q")
    _git(source, "add", "-A")
    _git(source, "commit", "-q", "-m", "all")
    time.sleep(SETTLE_SECONDS)
    first = _time(lambda: take_snapshot(source, workspace))
    medians = _interleaved(
        {
            "second_snapshot": lambda: take_snapshot(source, workspace),
            "git_status": lambda: _git(source, "status", "--porcelain"),
        },
        rounds,
    )
    changed = source / "folder-000" / "file-000.py"
    times = []
    for turn in range(5):
        changed.write_text(f"changed = {turn}\n")
        times.append(_time(lambda: take_snapshot(source, workspace)))
    ratio = medians["second_snapshot"] / medians["git_status"]
    return {
        "files": files,
        "first_snapshot": first,
        **medians,
        "one_file_changed": statistics.median(times),
        "ratio_to_git_status": ratio,
    }


def _small_tree(folder: Path, rounds: int) -> dict[str, Any]:
    source = folder / "small"
    _make_tree(source, 20)
    _git(source, "init", "-q")
    _git(source, "add", "-A")
    _git(source, "commit", "-q", "-m", "all")
    time.sleep(SETTLE_SECONDS)
    times: dict[str, list[float]] = {"first_snapshot": [], "second_snapshot": [], "lay_out": [], "git_properties": []}
    for turn in range(rounds):
        workspace = folder / f"small-workspace-{turn}"
        times["first_snapshot"].append(_time(lambda where=workspace: take_snapshot(source, where)))
        times["second_snapshot"].append(_time(lambda where=workspace: take_snapshot(source, where)))
        (manifest,) = (workspace / "snapshots").glob("*.json")
        times["lay_out"].append(
            _time(lambda one=manifest, where=workspace: lay_out(one, where / "blobs", where / "code"))
        )
        times["git_properties"].append(_time(lambda: git_properties(source)))
    return {"files": 20, **{name: statistics.median(values) for name, values in times.items()}}


def _make_tree(source: Path, files: int) -> None:
    for number in range(files):
        folder = source / f"folder-{number // FILES_PER_FOLDER:03}"
        if number % FILES_PER_FOLDER == 0:
            folder.mkdir(parents=True)
        (folder / f"file-{number % FILES_PER_FOLDER:03}.py").write_text(f"number = {number}\n" * 5)


def _git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=benchmark", "-c", "user.email=benchmark@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def _interleaved(candidates: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, candidate in candidates.items():
            times[name].append(_time(candidate))
    return {name: statistics.median(values) for name, values in times.items()}


def _time(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _table(results: dict[str, Any]) -> str:
    lines = []
    for size, result in results.items():
        lines.append(f"{size} tree, {result['files']:,} files")
        for name, value in result.items():
            if name == "ratio_to_git_status":
                lines.append(f"  {name:<22} {value:10.2f}")
            elif name != "files":
                lines.append(f"  {name:<22} {value * 1000:10.2f} ms")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How long a snapshot takes.")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--files", type=int, default=50_000, help="size of the large tree")
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()
    if not shutil.which("git"):
        parser.error("git is needed to compare with")
    results = measure(options.files, options.rounds)
    print(json.dumps(results, indent=1) if options.json else _table(results))


if __name__ == "__main__":
    main()
