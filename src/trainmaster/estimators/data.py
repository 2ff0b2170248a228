"""Data of a run: from what a person gives to the bindings of a job.

The datastore classes are met by what they can do, not by their type: a DataReference and a Datastore offer
`to_binding()`, a DataReferenceConfiguration `to_binding(name)`, a DataPath `create_data_reference()`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, get_args

from trainmaster.errors import UserErrorException
from trainmaster.estimators import not_yet, values
from trainmaster.job import DataBinding, DataMode

MODEL_LOCATION = "MODEL_LOCATION"
_NAME = re.compile(r"[A-Za-z0-9_]+")


def is_reference(value: Any) -> bool:
    """Whether `value` stands for data of a datastore."""
    if isinstance(value, type) or _is_configuration(value):
        return False
    return callable(getattr(value, "to_binding", None))


def refuse_unbound(parameter: str, value: Any) -> None:
    """Refuses what is about data, but does not say how the script gets it."""
    if isinstance(value, type):
        return
    if hasattr(value, "as_named_input"):
        raise UserErrorException(
            f"{parameter} holds a Dataset that does not say how it is used",
            hint="Call as_mount(), as_download() or as_named_input(name) on it first.",
        )
    if type(value).__name__ in ("DatasetConsumptionConfig", "OutputFileDatasetConfig"):
        not_yet.dataset(parameter)
    if callable(getattr(value, "create_data_reference", None)):
        raise UserErrorException(
            f"{parameter} holds a {type(value).__name__}, which does not say how it is used",
            hint="Call create_data_reference() on it, or give datastore.path('folder').as_mount().",
        )


def binding_of(parameter: str, value: Any) -> DataBinding:
    """The binding of one item of `inputs`."""
    if is_reference(value):
        return _checked(parameter, value.to_binding())
    refuse_unbound(parameter, value)
    raise UserErrorException(
        f"{parameter} holds a {type(value).__name__}, which is not supported",
        hint="Give a DataReference or a datastore, such as datastore.path('folder').as_mount().",
    )


def inputs_of(parameter: str, given: Any) -> list[DataBinding]:
    """The bindings of `inputs`."""
    return [binding_of(parameter, item) for item in values.items(parameter, given)]


def configured(references: Any) -> list[DataBinding]:
    """The bindings of `RunConfiguration.data_references`."""
    given = values.mapping("data_references", references)
    return [_configured(values.text("each name of data_references", name), given[name]) for name in given]


def check_resume_from(value: Any) -> None:
    """Refuses what is not a DataPath."""
    is_path = callable(getattr(value, "create_data_reference", None)) and hasattr(value, "path_on_datastore")
    if isinstance(value, type) or not is_path:
        raise UserErrorException(
            f"resume_from must be a DataPath, not {type(value).__name__}",
            hint="Write resume_from=DataPath(datastore, 'folder/with/checkpoints').",
        )


def resume_binding(value: Any) -> DataBinding:
    """Where the script finds the checkpoints to go on from."""
    check_resume_from(value)
    return binding_of("resume_from", value.create_data_reference(data_reference_name=MODEL_LOCATION))


def merged(bindings: Iterable[DataBinding]) -> tuple[DataBinding, ...]:
    """`bindings` without repetitions; two different ones of the same name are an error."""
    found: dict[str, DataBinding] = {}
    for binding in bindings:
        if found.setdefault(binding.name, binding) != binding:
            raise UserErrorException(
                f"two different data references are called {binding.name!r}",
                hint="Give one of them another data_reference_name.",
            )
    return tuple(found.values())


def _configured(name: str, value: Any) -> DataBinding:
    where = f"data_references[{name!r}]"
    if is_reference(value):
        # The key is what the program calls it, whatever name the reference had before.
        return _checked(where, replace(binding_of(where, value), name=name))
    if not _is_configuration(value) or not value.datastore_name:
        raise UserErrorException(
            f"{where} must name a datastore", hint="Give a DataReferenceConfiguration(datastore_name=...)."
        )
    return _checked(where, value.to_binding(name))


def _is_configuration(value: Any) -> bool:
    return hasattr(value, "datastore_name") and callable(getattr(value, "to_binding", None))


def _checked(parameter: str, binding: Any) -> DataBinding:
    if not isinstance(binding, DataBinding):
        raise UserErrorException(f"{parameter} holds a {type(binding).__name__} where data was expected")
    if binding.mode not in get_args(DataMode):
        raise UserErrorException(f"{parameter}: mode must be mount, download or upload, not {binding.mode!r}")
    if not _NAME.fullmatch(binding.name):
        raise UserErrorException(
            f"{parameter}: {binding.name!r} cannot be part of a variable's name",
            hint="Use letters, digits and underscores in data_reference_name.",
        )
    return binding
