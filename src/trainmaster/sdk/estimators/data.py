"""The data of a run: from the user's objects to the bindings of a job.

The data classes are recognised by their methods, not by their type: a DataReference, a Datastore, a
DatasetConsumptionConfig and an OutputFileDatasetConfig have `to_binding()`, a DataReferenceConfiguration
`to_binding(name)`, a DataPath `create_data_reference()`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, get_args

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.estimators import values
from trainmaster.shared.job_spec import Binding, DataBinding, DataMode, DatasetInput

MODEL_LOCATION = "MODEL_LOCATION"
_NAME = re.compile(r"[A-Za-z0-9_]+")


def is_reference(value: Any) -> bool:
    """Whether `value` refers to data of a datastore."""
    if isinstance(value, type) or _is_configuration(value):
        return False
    return callable(getattr(value, "to_binding", None))


def refuse_unbound(parameter: str, value: Any) -> None:
    """Refuses data that does not say how the script gets it."""
    if isinstance(value, type):
        return
    if hasattr(value, "as_named_input"):
        raise UserErrorException(
            f"{parameter} contains a Dataset that does not say how it is used",
            hint="Call as_mount(), as_download() or as_named_input(name) on it first.",
        )
    if callable(getattr(value, "create_data_reference", None)):
        raise UserErrorException(
            f"{parameter} contains a {type(value).__name__}, which does not say how it is used",
            hint="Call create_data_reference() on it, or give datastore.path('folder').as_mount().",
        )


def binding_of(parameter: str, value: Any) -> Binding:
    """The binding of one item of `inputs`."""
    if is_reference(value):
        return _check_binding(parameter, value.to_binding())
    refuse_unbound(parameter, value)
    raise UserErrorException(
        f"{parameter} contains a {type(value).__name__}, which is not supported",
        hint="Give a DataReference or a datastore, such as datastore.path('folder').as_mount(), or a dataset input.",
    )


def word_of(binding: Binding) -> str:
    """The placeholder for `binding` in a command line, which the job replaces."""
    if isinstance(binding, DatasetInput) and binding.mode == "direct":
        return f"$TRAINMASTER_DATASET_{binding.name}"
    return f"$AZUREML_DATAREFERENCE_{binding.name}"


def inputs_of(parameter: str, given: Any) -> list[Binding]:
    """The bindings of `inputs`."""
    return [binding_of(parameter, item) for item in values.items(parameter, given)]


def bind_references(references: Any) -> list[Binding]:
    """The bindings of `RunConfiguration.data_references`."""
    given = values.mapping("data_references", references)
    return [_bind_reference(values.text("each name of data_references", name), given[name]) for name in given]


def datasets_of(parameter: str, given: Any) -> list[Binding]:
    """The bindings of `RunConfiguration.data` and `output_data`: the key is the name of each."""
    found = [(name, binding_of(parameter, value)) for name, value in values.mapping(parameter, given).items()]
    return [_check_binding(parameter, replace(binding, name=values.text(parameter, name))) for name, binding in found]


def check_resume_from(value: Any) -> None:
    """Refuses what is not a DataPath."""
    is_path = callable(getattr(value, "create_data_reference", None)) and hasattr(value, "path_on_datastore")
    if isinstance(value, type) or not is_path:
        raise UserErrorException(
            f"resume_from must be a DataPath, not {type(value).__name__}",
            hint="Write resume_from=DataPath(datastore, 'folder/with/checkpoints').",
        )


def resume_binding(value: Any) -> Binding:
    """The binding of the folder with checkpoints from which the script continues."""
    check_resume_from(value)
    return binding_of("resume_from", value.create_data_reference(data_reference_name=MODEL_LOCATION))


def merge_bindings(bindings: Iterable[Binding]) -> tuple[Binding, ...]:
    """`bindings` without repetitions. Two different ones with the same name are an error."""
    found: dict[str, Binding] = {}
    for binding in bindings:
        if found.setdefault(binding.name, binding) != binding:
            raise UserErrorException(
                f"two different data references or datasets are called {binding.name!r}",
                hint="Give one of them another name (data_reference_name, as_named_input).",
            )
    return tuple(found.values())


def _bind_reference(name: str, value: Any) -> Binding:
    where = f"data_references[{name!r}]"
    if is_reference(value):
        # The key is the name, whatever name the reference had before.
        return _check_binding(where, replace(binding_of(where, value), name=name))
    if not _is_configuration(value) or not value.datastore_name:
        raise UserErrorException(
            f"{where} must name a datastore", hint="Give a DataReferenceConfiguration(datastore_name=...)."
        )
    return _check_binding(where, value.to_binding(name))


def _is_configuration(value: Any) -> bool:
    return hasattr(value, "datastore_name") and callable(getattr(value, "to_binding", None))


def _check_binding(parameter: str, binding: Any) -> Binding:
    if not isinstance(binding, Binding):
        raise UserErrorException(f"{parameter} contains a {type(binding).__name__} where data was expected")
    if isinstance(binding, DataBinding) and binding.mode not in get_args(DataMode):
        raise UserErrorException(f"{parameter}: mode must be mount, download or upload, not {binding.mode!r}")
    if not _NAME.fullmatch(binding.name):
        raise UserErrorException(
            f"{parameter}: {binding.name!r} cannot be part of the name of a variable",
            hint="Use letters, digits and underscores in data_reference_name.",
        )
    return binding
