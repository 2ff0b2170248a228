"""What `trainmaster --help` prints."""

from __future__ import annotations

from trainmaster import __version__
from trainmaster.cli.commands import EXIT_CODES, SECTIONS
from trainmaster.sdk.display.screen import paint

_USAGE = "Usage: trainmaster COMMAND [OPTIONS] ...        trainmaster COMMAND --help explains a command"
_EXAMPLES = (
    ("trainmaster submit . train.py --wait -- --lr 0.1", "run ./train.py and show its output"),
    ("trainmaster submit . train.py --pip torch", "run it in an environment with torch"),
    ("trainmaster logs -f last", "follow the newest run"),
)
_NAMES = (
    "RUN is a run's id or the beginning of one, the name of an experiment (its newest run), 'last' or @1 for the\n"
    "newest run, @2 for the one before, and so on.\n"
    "Every command takes --workspace, to use another workspace than this folder's, and --json, to print only data."
)


def manual() -> str:
    """The text of the page."""
    parts = [f"{paint('Trainmaster', 'bold')} {__version__}: train on your own machines.", _USAGE]
    parts += [_list(title, [(each.name, each.summary) for each in commands]) for title, commands in SECTIONS]
    parts += [_list("Examples", _EXAMPLES), _NAMES]
    parts.append(_list("Exit codes", [(str(code), meaning) for code, meaning in EXIT_CODES]))
    return "\n\n".join(parts)


def group(name: str) -> str:
    """The help of a word that several commands begin with, such as `env`; empty for any other word."""
    found = [each for _, commands in SECTIONS for each in commands]
    below = [(each.name, each.summary) for each in found if each.name.startswith(f"{name} ")]
    if not below or name in (each.name for each in found):
        return ""
    return _list(f"trainmaster {name}", below) + f"\n\ntrainmaster {below[0][0]} --help explains a command"


def _list(title: str, rows: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> str:
    width = max(len(left) for left, _ in rows)
    lines = [f"  {paint(left.ljust(width), 'cyan')}  {right}" for left, right in rows]
    return "\n".join([paint(title, "bold"), *lines])
