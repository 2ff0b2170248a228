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

    def __init__(self, read_version: Callable[[], int]) -> None:
        """`read_version` returns another number after each change of the store."""
        self.read_version = read_version
        self._answers: OrderedDict[bytes, bytes] = OrderedDict()
        self._version = read_version()
        self._size = 0

    def find(self, request: bytes) -> bytes | None:
        """The answer to the same request, if nothing has changed since."""
        if self._version != self.read_version():
            self._forget()
            return None
        return self._answers.get(request)

    def keep(self, request: bytes, answer: bytes, version: int) -> None:
        """Keep an answer for which the store was read when it had this version, or later."""
        size = len(request) + len(answer)
        if self._version != self.read_version():
            self._forget()
        if version != self._version or size > _LARGEST or request in self._answers:
            return
        self._answers[request] = answer
        self._size += size
        while self._size > _MOST_BYTES:
            old, text = self._answers.popitem(last=False)
            self._size -= len(old) + len(text)

    def _forget(self) -> None:
        self._version = self.read_version()
        self._answers.clear()
        self._size = 0
