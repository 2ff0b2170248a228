"""Which names, versions and labels a model may have, in jobs and outside of them."""

import re
from collections.abc import Sequence

from trainmaster.job.errors import ModelNotFoundException, UserErrorException, WebserviceException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_LONGEST_KNOWN = 256


class Framework(object):
    """The frameworks that have a name here; any other name may be given too."""

    CUSTOM = "Custom"
    TENSORFLOW = "TensorFlow"
    SCIKITLEARN = "ScikitLearn"
    ONNX = "Onnx"
    TFKERAS = "TfKeras"
    PYTORCH = "PyTorch"
    MULTI = "Multi"


def is_name(name: object) -> bool:
    """Whether a model can be registered under this name. MLflow's clients use others, too."""
    return isinstance(name, str) and bool(_NAME.fullmatch(name))


def check_known_name(name: object) -> str:
    """`name`, if a model in the registry can have it: MLflow's clients choose names more freely."""
    if isinstance(name, str) and 0 < len(name) <= _LONGEST_KNOWN and not any(sign in name for sign in "/:\0"):
        return name
    return check_name(name)


def check_name(name: object) -> str:
    """`name`, if a model can be registered under it."""
    if not isinstance(name, str) or not is_name(name):
        raise WebserviceException(
            "{!r} cannot be the name of a model".format(str(name)[:60]),
            hint="Use letters, digits, dashes, dots and underscores, 255 at most, a letter or digit first.",
        )
    return name


def split_id(model_id: object) -> "tuple[str, int]":
    """Name and version of `name:version`.

    >>> split_id("mnist:3")
    ('mnist', 3)
    """
    name, _, version = str(model_id).rpartition(":")
    if not name or not version.isdecimal():
        raise WebserviceException(
            "{!r} is not the id of a model".format(str(model_id)[:300]), hint="Ids are like 'mnist:3'."
        )
    return name, int(version)


def check_version(version: object) -> "int | None":
    """A version as a number; None for None."""
    if version is None:
        return None
    text = str(version)
    if isinstance(version, bool) or not text.isdecimal() or not 0 < int(text) < 1 << 31:
        raise ModelNotFoundException(
            "ModelNotFound: {!r} is not a version of a model".format(text[:60]), hint="Versions are 1, 2, 3, ..."
        )
    return int(text)


def check_framework(framework: object, version: object) -> "tuple[str, str]":
    """Framework and its version as texts; known names in their own spelling."""
    if version and not framework:
        raise WebserviceException(
            "model_framework_version needs model_framework",
            hint="Give both, such as model_framework=Model.Framework.PYTORCH.",
        )
    known = {value.lower(): value for name, value in vars(Framework).items() if name.isupper()}
    text = str(framework or "")
    return known.get(text.lower(), text), str(version or "")


def check_labels(labels: "Any", what: str) -> "dict[str, str]":
    """Tags or properties, their names and values as text."""
    if labels is None:
        return {}
    if not hasattr(labels, "items"):
        raise UserErrorException("{} must be a dict, not {}".format(what, type(labels).__name__))
    return {str(key): "" if value is None else str(value) for key, value in labels.items()}


def label_names(names: "Any") -> "list[str]":
    """The keys of tags as a list; a single key may be given as text.

    >>> label_names("stage")
    ['stage']
    """
    return [names] if isinstance(names, str) else [str(name) for name in names or ()]


def as_filter(wanted: "Any", what: str) -> "dict[str, str | None]":
    """v1's filters of tags and properties: `"key"` matches any value, `["key", "value"]` that value.

    >>> as_filter(["stage", ["team", "vision"]], "tags")
    {'stage': None, 'team': 'vision'}
    """
    if wanted is None:
        return {}
    if hasattr(wanted, "items"):
        return {str(key): None if value is None else str(value) for key, value in wanted.items()}
    found: "dict[str, str | None]" = {}
    for each in [wanted] if isinstance(wanted, str) else wanted:
        if isinstance(each, str):
            found[each] = None
        elif isinstance(each, (list, tuple)) and len(each) == 2:
            found[str(each[0])] = str(each[1])
        else:
            raise UserErrorException(
                "{!r} is not a filter of {}".format(each, what), hint="Give ['key', ['key2', 'value']], or a dict."
            )
    return found


def dataset_uses(datasets: "Any", find_id: "Callable[[Any], str]") -> "list[dict[str, str]]":
    """v1's pairs of a purpose and a dataset, each once; `find_id` returns the id of a dataset.

    >>> dataset_uses([("training", "d1"), ("training", "d1")], str)
    [{'purpose': 'training', 'dataset_id': 'd1'}]
    """
    if datasets is None:
        return []
    if not _is_list(datasets):
        raise dataset_error(datasets)
    wrong = [each for each in datasets if not _is_list(each) or len(each) != 2]
    if wrong:
        raise dataset_error(wrong[0])
    found: "list[dict[str, str]]" = []
    for purpose, dataset in datasets:
        use = {"purpose": str(purpose), "dataset_id": find_id(dataset)}
        if use not in found:
            found.append(use)
    return found


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def dataset_error(value: object) -> UserErrorException:
    """The error for something that is not a dataset."""
    return UserErrorException(
        "{} is not a reference to a dataset".format(repr(value)[:200]),
        hint="Give pairs: datasets=[('training', dataset)]. Samples are datasets themselves.",
    )
