"""What `trainmaster --help` prints."""

from __future__ import annotations

from trainmaster import __version__
from trainmaster.cli.commands import EXIT_CODES, SECTIONS
from trainmaster.sdk.display.screen import paint

_USAGE = "trainmaster COMMAND [OPTIONS] ...        trainmaster COMMAND --help tells more"
_EXAMPLES = (
    ("trainmaster submit . train.py --wait -- --lr 0.1", "run ./train.py and see its output"),
    ("trainmaster submit . train.py --pip torch", "in an environment that has torch"),
    ("trainmaster logs -f last", "follow the newest run"),
)
_NAMES = (
    "RUN is the id of a run, the beginning of one, 'last', or @1, @2, ... for the newest, the one before, ...\n"
    "--workspace names another workspace than this folder's, --json prints data alone: both on every command."
)


def manual() -> str:
    """The page."""
    parts = [f"{paint('Trainmaster', 'bold')} {__version__}: train on your own machines.", _USAGE]
    parts += [_list(title, [(each.name, each.summary) for each in commands]) for title, commands in SECTIONS]
    parts += [_list("Examples", _EXAMPLES), _NAMES]
    parts.append(_list("Exit codes", [(str(code), meaning) for code, meaning in EXIT_CODES]))
    return "\n\n".join(parts)


def group(name: str) -> str:
    """The page of a word that several commands begin with, such as `env`; empty if it is none."""
    found = [each for _, commands in SECTIONS for each in commands]
    below = [(each.name, each.summary) for each in found if each.name.startswith(f"{name} ")]
    if not below or name in (each.name for each in found):
        return ""
    return _list(f"trainmaster {name}", below) + f"\n\ntrainmaster {below[0][0]} --help tells more"


def _list(title: str, rows: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> str:
    width = max(len(left) for left, _ in rows)
    lines = [f"  {paint(left.ljust(width), 'cyan')}  {right}" for left, right in rows]
    return "\n".join([paint(title, "bold"), *lines])
