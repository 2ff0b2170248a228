"""`trainmaster tag`, `name` and `note`: what people write about a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.cli import exits
from trainmaster.cli.opening import find_run, find_run_to_change, get_run, open_workspace
from trainmaster.cli.output import show_result
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.labels import check_tags
from trainmaster.sdk.display.describing import list_labels, run_as_json
from trainmaster.sdk.display.screen import note as say_note
from trainmaster.sdk.display.screen import say, say_json

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace
    from trainmaster.shared.records import RunRecord

_FROM_STANDARD_INPUT = "-"


def tag_arguments(parser: Parser) -> None:
    _add_run(parser)
    parser.add_argument("tags", metavar="NAME[=VALUE]", nargs="*", help="tags to set")
    parser.add_argument("--remove", metavar="NAME", action="append", default=[], help="a tag to remove (repeatable)")


def tag(options: Options) -> int:
    """Set and remove tags of a run. Without tags, show those it has.

    JSON: the run, as in 'runs'.

      trainmaster tag last kind=baseline good --remove draft
    """
    given = check_tags(read_tags(options.tags))
    both = sorted(set(given) & set(options.remove))
    if both:
        raise UserErrorException(f"tag '{both[0]}' is both set and removed", hint="Specify only one of them.")
    workspace = open_workspace(options.workspace)
    if not given and not options.remove:
        return _show_tags(find_run(workspace, options.run), options)
    record = find_run_to_change(workspace, options.run)
    if given:
        workspace.connection.call("runs.tags.set", run_id=record.id, tags=given)
    if options.remove:
        workspace.connection.call("runs.tags.remove", run_id=record.id, names=options.remove)
    return _show_tags(get_run(workspace, record.id), options)


def read_tags(words: list[str]) -> dict[str, str | None]:
    """`NAME=VALUE` or `NAME` words as tags.

    >>> read_tags(["kind=base", "good"])
    {'kind': 'base', 'good': None}
    """
    found: dict[str, str | None] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not name:
            raise UserErrorException(f"{word!r} is not NAME=VALUE", hint="Write: trainmaster tag RUN kind=baseline")
        found[name] = value if sign else None
    return found


def _show_tags(record: RunRecord, options: Options) -> int:
    return show_result(options, run_as_json(record), f"{record.id}: {list_labels(record) or 'no tags'}")


def name_arguments(parser: Parser) -> None:
    _add_run(parser)
    parser.add_argument("words", metavar="NAME", nargs="*", help="the new name; '' removes it")


def name(options: Options) -> int:
    """Give a run a name for people, or show the one it has. Lists, reports and the studio show it; the id stays.

    JSON: the run, as in 'runs'.

      trainmaster name last "first with dropout"
    """
    workspace = open_workspace(options.workspace)
    if not options.words:
        record = find_run(workspace, options.run)
        return show_result(options, run_as_json(record), record.display_name or record.id)
    record = _update(workspace, options.run, display_name=" ".join(options.words).strip())
    text = f"is now '{record.display_name}'" if record.display_name else "has no name any more"
    return show_result(options, run_as_json(record), f"{record.id} {text}")


def note_arguments(parser: Parser) -> None:
    _add_run(parser)
    parser.add_argument(
        "text", metavar="TEXT", nargs="?", help="the new note, in Markdown; '-' reads standard input, '' removes it"
    )
    parser.add_argument("--file", metavar="FILE", help="read the note from this file")


def note(options: Options) -> int:
    """Write a note about a run, in Markdown, or print the one it has. Reports and the studio show it.

    JSON: the run, as in 'runs', and "description".

      trainmaster note last "Diverges after *epoch 3*: see [the paper](https://example.org)."
      trainmaster note last --file findings.md
    """
    if options.text is not None and options.file is not None:
        raise UserErrorException("TEXT and --file are both given", hint="Specify only one of them.")
    workspace = open_workspace(options.workspace)
    text = _read_note(options)
    if text is None:
        return _print_note(find_run(workspace, options.run), options)
    record = _update(workspace, options.run, description=text.strip())
    done = "is stored" if record.description else "is removed"
    return show_result(options, _note_as_json(record), f"{record.id}: the note {done}")


def _print_note(record: RunRecord, options: Options) -> int:
    if options.json:
        say_json(_note_as_json(record))
    elif record.description:
        say(record.description)
    else:
        say_note(f"{record.id} has no note. 'trainmaster note {record.id} TEXT' writes one.")
    return exits.OK


def _read_note(options: Options) -> str | None:
    """The new note; None if none is given."""
    if options.file is not None:
        path = Path(options.file).expanduser()
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            cause = error.strerror if isinstance(error, OSError) else "It is not UTF-8 text."
            raise UserErrorException(f"the note cannot be read from {path}", cause=str(cause)) from None
    if options.text == _FROM_STANDARD_INPUT:
        return sys.stdin.read()
    return None if options.text is None else str(options.text)


def _update(workspace: Workspace, given: str, **changes: str) -> RunRecord:
    run_id = find_run_to_change(workspace, given).id
    workspace.connection.call("runs.update", run_id=run_id, **changes)
    return get_run(workspace, run_id)


def _note_as_json(record: RunRecord) -> dict[str, Any]:
    return {**run_as_json(record), "description": record.description}


def _add_run(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run's id or its beginning, 'last' or @N")
