"""What a host must hear. Each message is sent again over the next connection: the last one may have lost it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

Message = tuple[dict[str, Any], bytes]
"""A header and bytes."""


class Messages:
    """The messages of one node or job. A message with the same header replaces the earlier one.

    >>> messages = Messages()
    >>> messages.add({"op": "put", "path": "a"}, b"1"), messages.add({"op": "put", "path": "a"}, b"1")
    (True, False)
    >>> messages.add({"op": "put", "path": "a"}, b"2"), list(messages)
    (True, [({'op': 'put', 'path': 'a'}, b'2')])
    """

    def __init__(self) -> None:
        self._messages: dict[str, Message] = {}

    def add(self, header: Mapping[str, Any], payload: bytes = b"") -> bool:
        """Keeps a message; returns whether it is new or changed."""
        key, message = json.dumps(header, sort_keys=True), (dict(header), payload)
        if self._messages.get(key) == message:
            return False
        self._messages[key] = message
        return True

    def __iter__(self) -> Iterator[Message]:
        return iter(list(self._messages.values()))
