"""The inputs and outputs of a model, from its facts and samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import TrainmasterError, WebserviceException
from trainmaster.shared.notices import warn

if TYPE_CHECKING:
    from trainmaster.sdk.models.model import Model

_SAMPLE_ROWS = 2


def find_inputs(model: Model) -> list[dict[str, Any]]:
    """The fact `inputs`; else the columns of the model's sample input, if that is a table of numbers."""
    return fact(model, "inputs") or _read_sample(model)


def fact(model: Model, name: str) -> list[dict[str, Any]]:
    """A fact about the model: a list of {"name", "type", "shape"}."""
    found = model.facts.get(name) or []
    try:
        return [{"name": str(each["name"]), "type": str(each["type"]), "shape": each["shape"]} for each in found]
    except (KeyError, TypeError):
        raise WebserviceException(
            f"the fact {name!r} of model {model.id} does not describe its {name}",
            hint='Write model.add_facts({"inputs": [{"name": "x", "type": "float32", "shape": ["batch", 4]}]}).',
        ) from None


def _read_sample(model: Model) -> list[dict[str, Any]]:
    sample = model.sample_input_dataset
    if sample is None or not hasattr(sample, "to_pandas_dataframe"):
        return []
    try:
        table = sample.take(_SAMPLE_ROWS).to_pandas_dataframe()
    except (TrainmasterError, OSError, ImportError) as error:
        warn(f"the sample input of model {model.id} cannot be read, so inputs are not checked: {error}")
        return []
    if not len(table.columns) or any(kind.kind not in "fiub" for kind in table.dtypes):
        return []
    return [{"name": "input", "type": "float32", "shape": ["batch", len(table.columns)]}]
