"""What `export` has to say: the file, its inputs and outputs, and how near it comes to the model."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

# Where the facts are kept in the file itself, so that they go wherever it goes.
FACTS_KEY = "trainmaster"


@dataclass(frozen=True)
class Tensor:
    """An input or an output."""

    name: str
    type: str
    """As NumPy says it: float32, int64, object for text."""
    shape: tuple[int | str | None, ...] | None
    """A number, a name for a size that may vary (`batch`), or None where nothing is known. None at all: any shape."""

    def __str__(self) -> str:
        sizes = "any shape" if self.shape is None else " x ".join("?" if n is None else str(n) for n in self.shape)
        return f"{self.name}: {self.type}, {sizes or 'one value'}"


@dataclass(frozen=True)
class Parity:
    """How far the file's answers are from the model's, over all inputs that were tried."""

    max_absolute: float
    max_relative: float
    """The difference as a part of the largest value of that output."""
    tolerance: float
    """What was allowed: |difference| <= tolerance * (1 + |value|), for each number."""
    batches: tuple[int, ...]
    """The batch sizes that were tried; the first is the sample's."""

    def __str__(self) -> str:
        tried = ", ".join(str(n) for n in self.batches)
        return (
            f"largest difference {self.max_absolute:.3g} ({self.max_relative:.3g} of the largest value), "
            f"tolerance {self.tolerance:g}, batches of {tried}"
        )


@dataclass(frozen=True)
class Quantized:
    """What int8 weights change: the file against the same in float32."""

    kind: str
    """dynamic or static."""
    max_absolute: float
    max_relative: float
    bytes_before: int
    bytes_after: int
    accuracy_before: float | None = None
    accuracy_after: float | None = None

    def __str__(self) -> str:
        text = (
            f"int8 ({self.kind}): {self.bytes_before} -> {self.bytes_after} bytes, largest difference "
            f"{self.max_absolute:.3g} ({self.max_relative:.3g} of the largest value)"
        )
        if self.accuracy_before is None or self.accuracy_after is None:
            return text
        change = self.accuracy_after - self.accuracy_before
        return f"{text}, accuracy {self.accuracy_before:.4f} -> {self.accuracy_after:.4f} ({change:+.4f})"


@dataclass(frozen=True)
class Exported:
    """A model that is an ONNX file now."""

    path: str
    framework: str
    framework_version: str
    exporter: str
    """Which program converted it, with its release."""
    opset: int
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    parity: Parity
    quantized: Quantized | None = None
    notes: tuple[str, ...] = ()
    """What a reader should know, such as that the newer exporter could not do it."""

    def facts(self) -> dict[str, Any]:
        """The same as plain data, without the path; what is kept in the file and with a registered model."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        del plain["path"]
        return plain

    def __str__(self) -> str:
        lines = [f"{self.path}: {self.framework} {self.framework_version}, opset {self.opset}, by {self.exporter}"]
        lines += [f"  input   {each}" for each in self.inputs]
        lines += [f"  output  {each}" for each in self.outputs]
        lines.append(f"  parity  {self.parity}")
        if self.quantized is not None:
            lines.append(f"  {self.quantized}")
        lines += [f"  note    {each}" for each in self.notes]
        return "\n".join(lines)
