"""The report of `trainmaster migrate`: for each file its uses of v1's names, and what could not be read."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainmaster.job.errors import UserErrorException
from trainmaster.migration.cells import Piece, cell, modern
from trainmaster.migration.table import Judgement, Table, Verdict, table

_MARK = "azureml"
_INSTALL = re.compile(r"(?:^|\s|%)(?:pip3?|conda|mamba|uv)\s.*\binstall\b")
_DISTRIBUTION = re.compile(r"(?<![\w-])azureml-[a-z-]+")
_AZ = re.compile(r"^\s*az\s+ml\b")


@dataclass(frozen=True)
class Place:
    """One use of a name, with its place in a file."""

    line: int
    cell: int | None
    """The number of the cell in a notebook, from 1. Lines are then counted in the cell."""
    column: int
    name: str
    kind: str
    judgement: Judgement
    times: int = 1
    """How often a missing name, or something below it, is used in the file."""

    def as_json(self) -> dict[str, Any]:
        place = {"line": self.line, "column": self.column + 1}
        where = place if self.cell is None else {"cell": self.cell, **place}
        judged = {"verdict": str(self.judgement.verdict), "sentence": self.judgement.sentence or None}
        often = {"times": self.times} if self.times > 1 else {}
        return {**where, "name": self.name, "kind": self.kind, **judged, **often}


@dataclass(frozen=True)
class Unreadable:
    """A file or a cell that is not valid Python."""

    cell: int | None
    line: int | None
    reason: str


@dataclass(frozen=True)
class FileReport:
    """The report of one file."""

    path: Path
    uses: tuple[Place, ...]
    unreadable: tuple[Unreadable, ...] = ()


def check_packages() -> None:
    """Raises UserErrorException if the packages of the extra `migrate` are not installed."""
    try:
        import libcst  # noqa: F401
        import nbformat  # noqa: F401
    except ImportError as error:
        raise UserErrorException(
            "'trainmaster migrate' needs packages that are not installed",
            cause=str(error),
            hint="pip install 'trainmaster[migrate]'",
        ) from None


def read(path: Path) -> FileReport:
    """The report of one file, even of one that cannot be read."""
    if path.is_dir():
        return FileReport(path, (), (Unreadable(None, None, "the folder cannot be read"),))
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return FileReport(path, (), (Unreadable(None, None, error.strerror or str(error)),))
    if _MARK not in text and not _AZ.search(text):
        return FileReport(path, ())
    if path.suffix == ".ipynb":
        return _notebook(path, text)
    return _pieces(path, [(None, Piece(text))])


def _notebook(path: Path, text: str) -> FileReport:
    import nbformat

    parse: Any = nbformat.reads
    try:
        book = parse(text, as_version=4)
        sources = [(n, str(each.source)) for n, each in enumerate(book.cells, 1) if each.cell_type == "code"]
    except (
        nbformat.reader.NotJSONError,
        nbformat.validator.ValidationError,
        AttributeError,
        KeyError,
        ValueError,
    ) as error:
        reason = f"not a notebook: {str(error).splitlines()[0][:200]}"
        return FileReport(path, (), (Unreadable(None, None, reason),))
    return _pieces(path, [(number, cell(source)) for number, source in sources])


def _pieces(path: Path, pieces: Iterable[tuple[int | None, Piece]]) -> FileReport:
    from trainmaster.migration.flow import Names

    names = Names()
    known = table()
    uses: list[Place] = []
    broken: list[Unreadable] = []
    for number, piece in pieces:
        uses += _shell_uses(number, piece, known)
        try:
            uses += _python_uses(number, piece.text, Names() if piece.own else names, known)
        except _BrokenError as error:
            # A cell may write a template, or a part of a script, to a file.
            if not piece.own:
                broken.append(Unreadable(number, error.line, error.reason))
    uses.sort(key=lambda use: (use.cell or 0, use.line, use.column))
    return FileReport(path, tuple(_with_absent_once(uses, known)), tuple(broken))


def _with_absent_once(uses: Iterable[Place], known: Table) -> Iterable[Place]:
    """The uses, with only the first of each missing name and everything below it."""
    kept: list[Place] = []
    places: dict[str, int] = {}
    for use in uses:
        root = known.absent_root(use.name) if use.judgement.verdict is Verdict.ABSENT else ""
        if root in places:
            place = places[root]
            kept[place] = replace(kept[place], times=kept[place].times + 1)
            continue
        if root:
            places[root] = len(kept)
        kept.append(use)
    return kept


class _BrokenError(Exception):
    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


def _python_uses(number: int | None, text: str, names: Any, known: Table) -> list[Place]:
    import libcst

    from trainmaster.migration.flow import uses_of

    if _is_too_deep(text):
        raise _BrokenError(1, "nested too deeply to be read")
    try:
        try:
            found = uses_of(text, names, known)
        except libcst.ParserSyntaxError:
            found = uses_of(modern(text), names, known)
    except libcst.ParserSyntaxError as error:
        raise _BrokenError(error.raw_line, "not valid Python") from None
    return [Place(use.line, number, use.column, use.name, use.kind, use.judgement) for use in found]


def _is_too_deep(text: str) -> bool:
    """Whether the text would crash this process: libcst's parser has no limit for nesting."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (RecursionError, MemoryError):
            return True
        except SyntaxError as error:
            return "too many nested" in str(error)
        except ValueError:
            return False
    return False


def _shell_uses(number: int | None, piece: Piece, known: Table) -> Iterator[Place]:
    for line, text in piece.shell:
        if _INSTALL.search(text):
            for match in _DISTRIBUTION.finditer(text):
                judgement = Judgement(Verdict.ABSENT, known.packages["in_shell"])
                yield Place(line, number, match.start(), match[0].rstrip("-"), "package", judgement)
        elif _AZ.search(text):
            yield Place(line, number, 0, "az ml", "command", Judgement(Verdict.ABSENT, known.packages["az_ml"]))


@dataclass(frozen=True)
class Summary:
    """The counts of all files together."""

    files: int
    with_uses: int
    counts: dict[Verdict, int]
    unreadable: int

    def as_json(self) -> dict[str, Any]:
        counts = {str(verdict): count for verdict, count in self.counts.items()}
        return {"files": self.files, "files_with_uses": self.with_uses, **counts, "unreadable": self.unreadable}


def summary(reports: Iterable[FileReport]) -> Summary:
    """The counts of all reports."""
    found = list(reports)
    uses = [use.judgement.verdict for report in found for use in report.uses]
    return Summary(
        files=len(found),
        with_uses=sum(bool(report.uses) for report in found),
        counts={verdict: uses.count(verdict) for verdict in Verdict},
        unreadable=sum(bool(report.unreadable) for report in found),
    )


def count_names(reports: Iterable[FileReport], verdict: Verdict) -> list[tuple[str, int, str]]:
    """Each name with this verdict, the most used first: its name, its count, its sentence."""
    counts: dict[tuple[str, str], int] = {}
    for report in reports:
        for use in report.uses:
            if use.judgement.verdict is verdict:
                key = (use.name, use.judgement.sentence)
                counts[key] = counts.get(key, 0) + 1
    rows = [(name, count, sentence) for (name, sentence), count in counts.items()]
    return sorted(rows, key=lambda row: (-row[1], row[0]))


def as_json(reports: Iterable[FileReport]) -> dict[str, Any]:
    """The report as JSON."""
    found = list(reports)
    return {
        "files": [
            {
                "path": str(report.path),
                "uses": [use.as_json() for use in report.uses],
                "unreadable": [vars(each) for each in report.unreadable],
            }
            for report in found
        ],
        "summary": summary(found).as_json(),
    }
