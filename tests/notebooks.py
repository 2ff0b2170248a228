"""Notebooks kept as text, with a `# %%` line before each cell, which can be read and compared."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def as_notebook(path: Path) -> nbformat.NotebookNode:
    """The notebook that a file with cells stands for."""
    cells = []
    for kind, text in re.findall(r"^# %%(.*)\n((?:(?!# %%).*\n)*)", path.read_text(), flags=re.M):
        make = nbformat.v4.new_markdown_cell if "markdown" in kind else nbformat.v4.new_code_cell
        cells.append(make(text.strip()))
    return nbformat.v4.new_notebook(cells=cells)


def give_config(folder: Path, workspace: str, place: str = ".azureml") -> None:
    """The file that the portal gave to download; in 2018 it was kept in `aml_config`."""
    file = folder / place / "config.json"
    file.parent.mkdir()
    identity = {"subscription_id": "0000-1111", "resource_group": "lab", "workspace_name": workspace}
    file.write_text(json.dumps(identity))


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Runs all cells in a kernel whose current folder is `folder`; an error in a cell is raised."""
    client = NotebookClient(
        notebook,
        timeout=600,
        startup_timeout=240,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env={**os.environ})


def printed(notebook: nbformat.NotebookNode) -> str:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return "".join(output.get("text", "") for output in outputs)
