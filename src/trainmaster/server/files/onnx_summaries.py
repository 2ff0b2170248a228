"""What an ONNX file contains: inputs, outputs, operators and the number of weights. The weights are not read."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainmaster.job.onnx.reading import read_fields, read_header, read_text

_GRAPH, _NODE, _INITIALIZER = 7, 1, 5
_OPERATOR, _DOMAIN = 4, 7
_DIMS = 1
_PAGE = 1 << 16
_MOST_PAGES = 64
_MOST_READ = 64 << 20
_MOST_TENSORS = 200
_LONGEST_TEXT = 1 << 20


@dataclass(frozen=True)
class OnnxTensor:
    """An input or an output."""

    name: str
    type: str
    """NumPy's name."""
    shape: tuple[str, ...] | None
    """A number or a name for each dimension, `?` if it is unknown; null for any shape."""


@dataclass(frozen=True)
class OperatorCount:
    """How often an operator occurs in a graph."""

    operator: str
    count: int


@dataclass(frozen=True)
class OnnxSummary:
    """What an ONNX file contains."""

    opset: int
    producer: str
    inputs: tuple[OnnxTensor, ...]
    outputs: tuple[OnnxTensor, ...]
    operators: tuple[OperatorCount, ...]
    """Most frequent first."""
    nodes: int
    weights: int
    """The number of values in all weights."""


class PagedBytes:
    """The bytes of a file, read page by page as they are needed. The file may change meanwhile.

    >>> data = PagedBytes(lambda start, size: b"hello"[start : start + size], 5)
    >>> data[1], data[1:4], len(data)
    (101, b'ell', 5)
    """

    def __init__(self, read: Callable[[int, int], bytes], size: int, most: int = _MOST_READ) -> None:
        """Raises ValueError when more than `most` bytes are read."""
        self._read = read
        self._size = size
        self._left = most
        self._pages: OrderedDict[int, bytes] = OrderedDict()

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            if at.stop - at.start > _LONGEST_TEXT:
                raise ValueError("a text is too long")
            return self._read_exactly(at.start, at.stop - at.start)
        page = self._pages.get(at // _PAGE)
        if page is None:
            page = self._load(at // _PAGE)
        try:
            return page[at % _PAGE]
        except IndexError:
            raise ValueError("the file became shorter") from None

    def _load(self, number: int) -> bytes:
        size = min(_PAGE, self._size - number * _PAGE)
        page = self._pages[number] = self._read_exactly(number * _PAGE, size)
        if len(self._pages) > _MOST_PAGES:
            self._pages.popitem(last=False)
        return page

    def _read_exactly(self, start: int, size: int) -> bytes:
        self._left -= size
        if self._left < 0:
            raise ValueError("its graph is too large to be shown")
        found = self._read(start, size)
        if len(found) != size:
            raise ValueError("the file became shorter")
        return found


def summarize_onnx(read: Callable[[int, int], bytes], size: int) -> OnnxSummary:
    """Read what an ONNX file contains. Raises ValueError for a file that is none, or too large."""
    data = PagedBytes(read, size)
    try:
        header = read_header(data)
        operators, weights = _count(data)
    except (TypeError, RecursionError, OverflowError) as error:
        raise ValueError(str(error)) from None
    return OnnxSummary(
        header.opset,
        header.producer[:200],
        tuple(map(_show_tensor, header.inputs[:_MOST_TENSORS])),
        tuple(map(_show_tensor, header.outputs[:_MOST_TENSORS])),
        tuple(OperatorCount(name[:200], count) for name, count in operators.most_common(_MOST_TENSORS)),
        operators.total(),
        weights,
    )


def _show_tensor(tensor: Any) -> OnnxTensor:
    shape = None
    if tensor.shape is not None:
        shape = tuple("?" if size is None else str(size)[:100] for size in tensor.shape[:100])
    return OnnxTensor(tensor.name[:200], tensor.type, shape)


def _count(data: PagedBytes) -> tuple[Counter[str], int]:
    operators: Counter[str] = Counter()
    weights = 0
    for number, graph in read_fields(data, 0, len(data)):
        for inner, span in read_fields(data, *graph) if number == _GRAPH else ():
            if inner == _NODE:
                operators[_read_operator(data, span)] += 1
            elif inner == _INITIALIZER:
                weights += _count_weights(data, span)
    return operators, weights


def _read_operator(data: PagedBytes, span: tuple[int, int]) -> str:
    name = domain = ""
    for number, value in read_fields(data, *span):
        if number == _OPERATOR:
            name = read_text(data, value)
        elif number == _DOMAIN:
            domain = read_text(data, value)
    return f"{domain}.{name}" if domain not in ("", "ai.onnx") else name


def _count_weights(data: PagedBytes, span: tuple[int, int]) -> int:
    """The product of the dimensions, which are numbers one by one or packed together."""
    sizes: list[int] = []
    for number, value in read_fields(data, *span):
        if number != _DIMS:
            # The dimensions come first, and the values are long.
            break
        sizes += [value] if isinstance(value, int) else _unpack(bytes(data[value[0] : value[1]]))
    return min(math.prod(sizes), 2**53)


def _unpack(packed: bytes) -> list[int]:
    found, value, shift = [], 0, 0
    for byte in packed[:200]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            found.append(value)
            value = shift = 0
    return found
