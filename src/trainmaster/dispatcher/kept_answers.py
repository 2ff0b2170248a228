"""Answers that are kept until the store changes: many clients ask for the same lists again and again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

_MOST_BYTES = 8 * 1024 * 1024
_LARGEST = 256 * 1024


class KeptAnswers:
    """The newest answers of operations whose results depend on their arguments and the store only, by request.

    >>> version = 1
    >>> kept = KeptAnswers(lambda: version)
    >>> kept.keep(b"request", b"answer", version=1)
    >>> kept.find(b"request")
    b'answer'
    >>> version = 2
    >>> kept.find(b"request")
    """

    def __init__(self, read_version: Callable[[], int | None]) -> None:
        """`read_version` returns another number after each change of the store, and None while it may change."""
        self.read_version = read_version
        self._answers: OrderedDict[bytes, bytes] = OrderedDict()
        self._version = read_version()
        self._size = 0

    def find(self, request: bytes) -> bytes | None:
        """The answer to the same request, if nothing has changed since."""
        return self._answers.get(request) if self._is_current(self.read_version()) else None

    def keep(self, request: bytes, answer: bytes, version: int | None) -> None:
        """Keep an answer for which the store was read when it had this version, or later."""
        size = len(request) + len(answer)
        if not self._is_current(self.read_version()) or version != self._version:
            return
        if size > _LARGEST or request in self._answers:
            return
        self._answers[request] = answer
        self._size += size
        while self._size > _MOST_BYTES:
            old, text = self._answers.popitem(last=False)
            self._size -= len(old) + len(text)

    def _is_current(self, version: int | None) -> bool:
        """Whether the answers are those for this version. If not, they are dropped."""
        if version != self._version:
            self._version = version
            self._answers.clear()
            self._size = 0
        return version is not None
