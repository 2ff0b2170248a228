"""Names, versions and labels of models: what may be written for each, in jobs and outside."""

import re
from collections.abc import Sequence

from trainmaster.job.errors import ModelNotFoundException, UserErrorException, WebserviceException

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")


class Framework(object):
    """What a model was made with; these are known, and any other name may be given too."""

    CUSTOM = "Custom"
    TENSORFLOW = "TensorFlow"
    SCIKITLEARN = "ScikitLearn"
    ONNX = "Onnx"
    TFKERAS = "TfKeras"
    PYTORCH = "PyTorch"
    MULTI = "Multi"


def check_name(name):
    """`name`, if it can name a model."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise WebserviceException(
            "{!r} cannot be the name of a model".format(str(name)[:60]),
            hint="Use letters, digits, dashes, dots and underscores, 255 at most, a letter or digit first.",
        )
    return name


def split_id(model_id):
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


def checked_version(version):
    """A version as a number; None for none."""
    if version is None:
        return None
    text = str(version)
    if isinstance(version, bool) or not text.isdecimal() or not 0 < int(text) < 1 << 31:
        raise ModelNotFoundException(
            "ModelNotFound: {!r} is no version of a model".format(text[:60]), hint="Versions are 1, 2, 3, ..."
        )
    return int(text)


def checked_framework(framework, version):
    """Framework and its version as texts; known names in their own spelling."""
    if version and not framework:
        raise WebserviceException(
            "model_framework_version was given without model_framework",
            hint="Give both, such as model_framework=Model.Framework.PYTORCH.",
        )
    known = {value.lower(): value for name, value in vars(Framework).items() if name.isupper()}
    text = str(framework or "")
    return known.get(text.lower(), text), str(version or "")


def checked_labels(labels, what):
    """Tags or properties as texts by name."""
    if labels is None:
        return {}
    if not hasattr(labels, "items"):
        raise UserErrorException("{} must be a dict, not {}".format(what, type(labels).__name__))
    return {str(key): "" if value is None else str(value) for key, value in labels.items()}


def label_names(names):
    """Keys of tags: one, or several.

    >>> label_names("stage")
    ['stage']
    """
    return [names] if isinstance(names, str) else [str(name) for name in names or ()]


def as_filter(wanted, what):
    """v1's filters of tags and properties: `"key"` asks that it is there, `["key", "value"]` for the value.

    >>> as_filter(["stage", ["team", "vision"]], "tags")
    {'stage': None, 'team': 'vision'}
    """
    if wanted is None:
        return {}
    if hasattr(wanted, "items"):
        return {str(key): None if value is None else str(value) for key, value in wanted.items()}
    found: "dict[str, object]" = {}
    for each in [wanted] if isinstance(wanted, str) else wanted:
        if isinstance(each, str):
            found[each] = None
        elif isinstance(each, (list, tuple)) and len(each) == 2:
            found[str(each[0])] = str(each[1])
        else:
            raise UserErrorException(
                "{!r} is no filter of {}".format(each, what), hint="Give ['key', ['key2', 'value']], or a dict."
            )
    return found


def dataset_uses(datasets, id_of):
    """v1's pairs of a purpose and a dataset, each once; `id_of` tells a dataset's id.

    >>> dataset_uses([("training", "d1"), ("training", "d1")], str)
    [{'purpose': 'training', 'dataset_id': 'd1'}]
    """
    if datasets is None:
        return []
    if not _is_several(datasets):
        raise no_dataset(datasets)
    wrong = [each for each in datasets if not _is_several(each) or len(each) != 2]
    if wrong:
        raise no_dataset(wrong[0])
    found = []
    for purpose, dataset in datasets:
        use = {"purpose": str(purpose), "dataset_id": id_of(dataset)}
        if use not in found:
            found.append(use)
    return found


def _is_several(value):
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def no_dataset(value):
    """The error about something in the place of a dataset."""
    return UserErrorException(
        "{} is no reference to a dataset".format(repr(value)[:200]),
        hint="Give pairs: datasets=[('training', dataset)]. Samples are datasets themselves.",
    )
