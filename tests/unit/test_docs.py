"""The documents: links lead somewhere, commands exist, code compiles."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trainmaster.cli.commands import EXIT_CODES, all_commands
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.records import SUCCESSORS, TERMINAL, Status

PROJECT = Path(__file__).parents[2]
DOCUMENTS = sorted([*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md")])
README = PROJECT / "README.md"
GUIDE = PROJECT / "docs/guide/command-line.md"

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_COMMAND = re.compile(r"(?:`|^\$ (?:\w+=\$\()?)trainmaster ((?:[a-z][a-z-]*)(?: [a-z][a-z-]*){0,2})", re.MULTILINE)
_FILE = re.compile(r"`((?:src|tests|docs|benchmarks|examples)/[\w./-]+)`")


def names(documents: list[Path]) -> list[str]:
    return [str(path.relative_to(PROJECT)) for path in documents]


def blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_links_lead_somewhere(document: Path) -> None:
    targets = [target.partition("#")[0] for target in _LINK.findall(document.read_text())]
    inside = [target for target in targets if target and "://" not in target]
    assert [target for target in inside if not (document.parent / target).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_files_that_are_named_are_there(document: Path) -> None:
    assert [name for name in _FILE.findall(document.read_text()) if not (PROJECT / name).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_commands_exist(document: Path) -> None:
    known = all_commands()
    said = _COMMAND.findall(document.read_text())
    assert [words for words in said if not any(" ".join(words.split()[:count]) in known for count in (3, 2, 1))] == []


def test_every_variable_is_on_the_page_of_variables() -> None:
    text = (PROJECT / "docs/reference/variables.md").read_text()
    sources = [path.read_text() for path in (PROJECT / "src").rglob("*.py")]
    named = {name for source in sources for name in re.findall(r"TRAINMASTER_[A-Z_]*[A-Z]", source)}
    assert sorted(name for name in named - {"TRAINMASTER_CONDA"} if name not in text) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_lines_are_short(document: Path) -> None:
    """Except for rows of tables, which cannot be broken, and for code."""
    prose = re.sub(r"^ *```.*?^ *```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert [line for line in prose.splitlines() if len(line) > 120 and not line.startswith("|")] == []


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 180


def test_the_glossary_has_few_words() -> None:
    glossary = (PROJECT / "CONTRIBUTING.md").read_text().partition("## Glossary")[2].partition("\n## ")[0]
    words = re.findall(r"^\| (\w[\w ]*) \|", glossary, re.MULTILINE)
    assert 0 < len(words) - 1 <= 25


def test_the_guide_names_every_command() -> None:
    text = GUIDE.read_text()
    assert [name for name in all_commands() if f"{name}`" not in text and f"{name} " not in text] == []


def test_exit_codes_are_those_of_the_command_line() -> None:
    text = (PROJECT / "docs/reference/errors.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (.*?) \|$", text, re.MULTILINE)
    assert [
        (code, meaning) for code, meaning in EXIT_CODES if dict(rows)[str(code)].partition("; for ")[0] != meaning
    ] == []
    assert len(rows) == len(EXIT_CODES)


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_code_compiles(document: Path) -> None:
    for code in blocks(document, "python"):
        compile(code, document.name, "exec")


def test_states_are_those_of_the_records() -> None:
    """The table in run-lifecycle.md says which state may follow which."""
    text = (PROJECT / "docs/internals/run-lifecycle.md").read_text()
    rows = {row[0]: row[1] for row in re.findall(r"^\| (\w+) \| [^|]+ \| ([^|]+) \|$", text, re.MULTILINE)}
    for state in (Status.PREPARING, Status.QUEUED, Status.STARTING, Status.RUNNING, Status.CANCEL_REQUESTED):
        said = {Status(word) for word in re.findall(r"[A-Z]\w+", rows[state])}
        assert said == SUCCESSORS[state] - TERMINAL, state
        assert "ended" in rows[state]
    assert rows[Status.FINALIZING].strip() == "ended"
    assert SUCCESSORS[Status.FINALIZING] == TERMINAL


def test_on_disk_names_every_place() -> None:
    text = (PROJECT / "docs/reference/on-disk.md").read_text()
    workspace, run = WorkspaceFolder(Path("/w")), RunFolder(Path("/r"))
    places = [getattr(workspace, name) for name, kind in vars(WorkspaceFolder).items() if isinstance(kind, property)]
    places += [getattr(run, name) for name, kind in vars(RunFolder).items() if isinstance(kind, property)]
    assert [place.name for place in places if place.name not in text] == []
