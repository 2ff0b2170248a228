"""The output of all ranks of a run as one text: whole lines, each after the name of its rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING

from trainmaster.sdk.display.screen import paint
from trainmaster.sdk.run.logs import LogText, Print, RunTexts, rank_logs

if TYPE_CHECKING:
    from trainmaster.sdk.backend.backend import LogFile, RunFiles

_STYLES = ("cyan", "yellow", "green", "blue")
# A longer line is printed before it ends, so that it does not fill the memory.
_LONGEST_LINE = 1 << 20


class Interleaved:
    """Reads what is added to the logs of all ranks. Lines of one rank keep their order."""

    def __init__(self, files: RunFiles, names: Sequence[str], output: IO[str] | None = None) -> None:
        """`names` are those of the ranks. On an `output` with colours, each rank has its own."""
        self._names = names
        self._width = max(map(len, names), default=0)
        self._output = output
        self._texts = RunTexts(files)
        self._lines: dict[str, RankLines] = {}

    def show(self, show: Print) -> None:
        """Shows the new lines that are complete."""
        self._show(show, RankLines.new)

    def finish(self, show: Print) -> None:
        """Shows everything new, including an incomplete last line."""
        self._show(show, RankLines.rest)

    def _show(self, show: Print, lines: Callable[[RankLines, LogFile], Iterator[str]]) -> None:
        for log, found in self._texts.find(rank_logs):
            rank_lines = self._lines.setdefault(log.identity, RankLines(found))
            prefix = self._prefix(log.rank or 0)
            # One call per rank, so that a terminal is not redrawn for every line.
            text = "".join(f"{prefix}{line}\n" for line in lines(rank_lines, log))
            if text:
                show(text)

    def _prefix(self, rank: int) -> str:
        name = self._names[rank] if rank < len(self._names) else f"rank {rank}"
        return paint(f"[{align(name, self._width)}]", _STYLES[rank % len(_STYLES)], self._output) + " "


class RankLines:
    """The lines of one log, as they become complete."""

    def __init__(self, text: LogText) -> None:
        self._text = text
        self._incomplete = ""

    def new(self, log: LogFile) -> Iterator[str]:
        """The new complete lines, without their line breaks."""
        for text in self._text.read_new(log):
            *complete, self._incomplete = (self._incomplete + text).split("\n")
            yield from map(visible, complete)
            if len(self._incomplete) > _LONGEST_LINE:
                yield self._take_incomplete()

    def rest(self, log: LogFile) -> Iterator[str]:
        """The new lines, including an incomplete last one."""
        yield from self.new(log)
        if self._incomplete:
            yield self._take_incomplete()

    def _take_incomplete(self) -> str:
        line, self._incomplete = self._incomplete, ""
        return visible(line)


def visible(line: str) -> str:
    r"""What a terminal shows of a line that was overwritten, as by progress bars.

    >>> visible("10%\r50%\r100%"), visible("ended as on Windows\r")
    ('100%', 'ended as on Windows')
    """
    return line.rstrip("\r").rsplit("\r", 1)[-1]


def align(name: str, width: int) -> str:
    """The name in `width` characters, with its number at the right.

    >>> align("rank 1", 7), align("ps 0", 9), align("worker 10", 9)
    ('rank  1', 'ps      0', 'worker 10')
    """
    kind, _, number = name.rpartition(" ")
    return f"{kind}{number.rjust(width - len(kind))}"
