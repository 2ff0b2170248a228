"""Collects the mistakes in a file, so that a person sees all of them at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from trainmaster.job.errors import TrainmasterError
from trainmaster.shared.marked_yaml import FileMistake


class Mistakes:
    """The errors found so far; each names its line."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: list[TrainmasterError] = []

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Notes an error inside the block, and continues after it."""
        try:
            yield
        except TrainmasterError as error:
            self.add(error)

    def add(self, error: TrainmasterError) -> None:
        """Notes an error."""
        self._found.append(error)

    def raise_any(self) -> None:
        """Raises what was found: one error as it is, several as a list."""
        if self._found:
            raise self.as_error()

    def as_error(self) -> TrainmasterError:
        """What was found, if anything was: one error as it is, several as a list."""
        if len(self._found) == 1:
            return self._found[0]
        return FileMistake(f"{self._file} has {len(self._found)} mistakes", cause=self._describe())

    def _describe(self) -> str:
        lines: list[str] = []
        for error in self._found:
            lines.append(error.headline.removeprefix(f"{self._file}, "))
            more = [*error.cause.splitlines(), *error.hint.splitlines()]
            lines += [f"  {line}" for line in more if line]
        return "\n".join(lines)
