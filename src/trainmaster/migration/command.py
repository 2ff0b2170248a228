"""`trainmaster migrate`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from trainmaster.migration.report import (
    FileReport,
    Place,
    Summary,
    as_json,
    check_packages,
    count_names,
    read,
    summary,
)
from trainmaster.migration.table import Verdict
from trainmaster.sdk.display.screen import note, paint, say, say_json
from trainmaster.sdk.display.text import count_of

_ALL_WORK, _SOME_ABSENT, _UNREADABLE = 0, 1, 2
_WORDS = {
    Verdict.WORKS: ("works", "green"),
    Verdict.DIFFERS: ("works differently", "yellow"),
    Verdict.ABSENT: ("missing", "bold red"),
}
_WIDTH = max(len(word) for word, _ in _WORDS.values())


def migrate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="+", help="a script, a notebook, or a folder that contains them")
    parser.add_argument("--problems", action="store_true", help="show only what differs or does not work")


def migrate(options: argparse.Namespace) -> int:
    """Find the names of the azureml SDK v1 in your scripts and notebooks, and check which of them work here. Nothing
    is changed.

    In folders, files that .amlignore or .gitignore exclude are skipped, and so are virtual environments and
    checkpoints. The exit code is 0 if everything works, perhaps differently; 1 if something is missing; 2 if a file
    cannot be read. A missing name is listed once per file, together with everything below it.

    JSON: {"files": [{"path", "uses": [{"line", "cell", "column", "name", "kind", "verdict", "sentence", "times"}],
    "unreadable": [{"cell", "line", "reason"}]}], "summary": {"files", "files_with_uses", "works", "differs", "absent",
    "unreadable"}}; "cell" is only in notebooks, "verdict" is works, differs or absent, and "times" is the number of
    uses of a missing name, if there are several.

      trainmaster migrate notebooks/ train.py
      trainmaster migrate . --problems
    """
    from trainmaster.migration.files import find_scripts

    check_packages()
    reports = [read(path) for path in find_scripts(options.paths)]
    total = summary(reports)
    if options.json:
        say_json(as_json(reports))
    else:
        for report in reports:
            _show(report, options.problems)
        _show_summary(reports, total)
    return _exit_code(total)


def _exit_code(total: Summary) -> int:
    if total.unreadable:
        return _UNREADABLE
    return _SOME_ABSENT if total.counts[Verdict.ABSENT] else _ALL_WORK


def _show(report: FileReport, problems: bool) -> None:
    uses = [use for use in report.uses if not problems or use.judgement.verdict is not Verdict.WORKS]
    if not uses and not report.unreadable:
        return
    say(paint(str(report.path), "bold"))
    for each in report.unreadable:
        place = _place(each.cell, each.line)
        say(f"  {place:<12} {paint('cannot be read', 'bold red')}: {each.reason}")
    for use in uses:
        _show_use(use)
    say()


def _show_use(use: Place) -> None:
    word, style = _WORDS[use.judgement.verdict]
    sentence = f": {use.judgement.sentence}" if use.judgement.sentence else ""
    often = f" ({use.times} times)" if use.times > 1 else ""
    place = _place(use.cell, use.line)
    say(f"  {place:<12} {paint(word.ljust(_WIDTH), style)}  {use.name}{often}{paint(sentence, 'dim')}")


def _place(cell: int | None, line: int | None) -> str:
    """
    >>> _place(None, 12), _place(3, 1), _place(3, None)
    ('12', 'cell 3:1', 'cell 3')
    """
    if cell is None:
        return "" if line is None else str(line)
    return f"cell {cell}" if line is None else f"cell {cell}:{line}"


def _show_summary(reports: Sequence[FileReport], total: Summary) -> None:
    if not total.with_uses and not total.unreadable:
        note(f"{count_of(total.files, 'file')}, none with azureml.")
        return
    missing = count_names(reports, Verdict.ABSENT)
    if missing:
        say(paint("Missing:", "bold"))
        for name, count, sentence in missing:
            say(f"  {count:>4} x {name}: {sentence}")
        say()
    works, differs, absent = (total.counts[verdict] for verdict in (Verdict.WORKS, Verdict.DIFFERS, Verdict.ABSENT))
    say(
        f"{count_of(total.files, 'file')}, {total.with_uses} with azureml: "
        f"{works} uses work, {differs} work differently, {absent} are missing."
    )
    if total.unreadable:
        say(paint(f"{count_of(total.unreadable, 'file')} could not be read completely.", "bold red"))
