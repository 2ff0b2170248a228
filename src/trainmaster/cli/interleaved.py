"""What all ranks of a run print, as one text: whole lines, each behind the name of its rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import IO

from trainmaster.sdk.display.screen import paint
from trainmaster.sdk.growing_text import GrowingText
from trainmaster.sdk.run.logs import Print, RunTexts, rank_logs
from trainmaster.shared.folders import RunFolder

_STYLES = ("cyan", "yellow", "green", "blue")
# A rank that never ends its line is not waited for beyond this: the text would fill the memory.
_LONGEST_LINE = 1 << 20


class Interleaved:
    """Reads on in the logs of all ranks. Lines of a rank keep their order; ranks mix as their lines are found."""

    def __init__(self, folder: RunFolder, names: Sequence[str], output: IO[str] | None = None) -> None:
        """`names` of the ranks; on an `output` with colours each has its own."""
        self.folder = folder
        self._names = names
        self._width = max(map(len, names), default=0)
        self._output = output
        self._texts = RunTexts(folder)
        self._lines: dict[int, RankLines] = {}

    def show(self, show: Print) -> None:
        """Shows the lines that are new and complete."""
        self._show(show, lambda rank: rank.new())

    def finish(self, show: Print) -> None:
        """Shows all that is new: a last line that nobody ended too."""
        self._show(show, lambda rank: rank.rest())

    def _show(self, show: Print, lines: Callable[[RankLines], Iterator[str]]) -> None:
        for rank, _, found in self._texts.of(lambda: rank_logs(self.folder)):
            of_log = self._lines.setdefault(id(found), RankLines(found))
            prefix = self._prefix(rank)
            # One call for each look at a rank: a terminal is not drawn anew for every line.
            text = "".join(f"{prefix}{line}\n" for line in lines(of_log))
            if text:
                show(text)

    def _prefix(self, rank: int) -> str:
        name = self._names[rank] if rank < len(self._names) else f"rank {rank}"
        return paint(f"[{aligned(name, self._width)}]", _STYLES[rank % len(_STYLES)], self._output) + " "


class RankLines:
    """The lines of one log, as they become complete."""

    def __init__(self, text: GrowingText) -> None:
        self._text = text
        self._begun = ""

    def new(self) -> Iterator[str]:
        """The complete lines, without their ends."""
        for text in self._text.new():
            *complete, self._begun = (self._begun + text).split("\n")
            yield from map(visible, complete)
            if len(self._begun) > _LONGEST_LINE:
                yield from self._taken()

    def rest(self) -> Iterator[str]:
        """The same, and what has no end yet."""
        yield from self.new()
        if self._begun:
            yield from self._taken()

    def _taken(self) -> Iterator[str]:
        begun, self._begun = self._begun, ""
        yield visible(begun)


def visible(line: str) -> str:
    r"""What a terminal would show of a line that was written over again, as progress bars do.

    >>> visible("10%\r50%\r100%"), visible("ended as on Windows\r")
    ('100%', 'ended as on Windows')
    """
    return line.rstrip("\r").rsplit("\r", 1)[-1]


def aligned(name: str, width: int) -> str:
    """A name in `width` letters, its number at the right.

    >>> aligned("rank 1", 7), aligned("ps 0", 9), aligned("worker 10", 9)
    ('rank  1', 'ps      0', 'worker 10')
    """
    kind, _, number = name.rpartition(" ")
    return f"{kind}{number.rjust(width - len(kind))}"
