"""The result of `export`: the file, its inputs and outputs, and how close its answers are to the model's."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

# The key of the facts in the metadata of the file.
FACTS_KEY = "trainmaster"


@dataclass(frozen=True)
class Tensor:
    """An input or an output."""

    name: str
    type: str
    """NumPy's name: float32, int64, object for text."""
    shape: tuple[int | str | None, ...] | None
    """For each dimension a number, a name if it is dynamic (`batch`), or None if unknown. No tuple: any shape."""

    def __str__(self) -> str:
        sizes = "any shape" if self.shape is None else " x ".join("?" if n is None else str(n) for n in self.shape)
        return f"{self.name}: {self.type}, {sizes or 'one value'}"


@dataclass(frozen=True)
class Parity:
    """How much the file's answers differ from the model's, over all inputs that were tried."""

    max_absolute: float
    max_relative: float
    """The difference relative to the largest value of that output."""
    tolerance: float
    """The limit for each number: |difference| <= tolerance * (1 + |value|)."""
    batches: tuple[int, ...]
    """The batch sizes that were tried; the first is that of the sample."""

    def __str__(self) -> str:
        tried = ", ".join(str(n) for n in self.batches)
        return (
            f"largest difference {self.max_absolute:.3g} ({self.max_relative:.3g} of the largest value), "
            f"tolerance {self.tolerance:g}, batches of {tried}"
        )


@dataclass(frozen=True)
class Quantized:
    """The effect of int8 weights, compared with the same file in float32."""

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
    """A model that was exported to an ONNX file."""

    path: str
    framework: str
    framework_version: str
    exporter: str
    """The program that converted the model, with its release."""
    opset: int
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    parity: Parity
    quantized: Quantized | None = None
    notes: tuple[str, ...] = ()
    """Remarks, such as that the newer exporter could not convert the model."""

    def facts(self) -> dict[str, Any]:
        """The result as plain data, without the path, as stored in the file and with a registered model."""
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
