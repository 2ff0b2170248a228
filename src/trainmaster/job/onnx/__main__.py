"""`python -m trainmaster.job.onnx`: converts a model in a file, in the environment of that model.

Reads an order as JSON from standard input. Writes the answer as JSON to the file that the order names: facts about the
exported model, or the error.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from trainmaster.job.errors import TrainmasterError
from trainmaster.job.onnx.exporting import export
from trainmaster.job.onnx.loading import load_model
from trainmaster.job.onnx.sampling import sample_for


def main() -> int:
    """Executes the order; returns the exit code."""
    order = json.load(sys.stdin)
    try:
        answer = {"facts": _convert(order)}
    except TrainmasterError as error:
        answer = {"error": error.to_wire()}
    with open(order["answer"], "w") as file:
        json.dump(answer, file)
    return 0 if "facts" in answer else 1


def _convert(order: dict[str, Any]) -> dict[str, Any]:
    sys.path[:0] = order["code"]
    model = load_model(order["kind"], order["path"])
    sample = sample_for(model, order["kind"], order["inputs"], order["sample"])
    return export(model, sample, order["target"], **order["settings"]).facts()


if __name__ == "__main__":
    sys.exit(main())
