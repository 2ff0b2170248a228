"""Which names, labels and images Kubernetes accepts. Pure."""

from __future__ import annotations

import re

_LABEL_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_IMAGE = re.compile(r"[A-Za-z0-9][\w.\-/:@]*", re.ASCII)


def is_label_name(text: str) -> bool:
    """Whether a namespace, a service or a host may have this name.

    >>> is_label_name("train"), is_label_name("Train"), is_label_name("a.b")
    (True, False, False)
    """
    return _LABEL_NAME.fullmatch(text) is not None


def is_object_name(text: str) -> bool:
    """Whether a claim, a secret or another object may have this name.

    >>> is_object_name("shared.data"), is_object_name("-x")
    (True, False)
    """
    return _SUBDOMAIN.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """Whether a label, an annotation or a device may have this name.

    >>> is_label_key("nvidia.com/gpu"), is_label_key("zone"), is_label_key("a/b/c")
    (True, True, False)
    """
    prefix, slash, name = text.rpartition("/")
    return _QUALIFIED.fullmatch(name) is not None and (not slash or is_object_name(prefix))


def is_label_value(text: str) -> bool:
    """
    >>> is_label_value("a100-80GB"), is_label_value(""), is_label_value("no spaces")
    (True, True, False)
    """
    return text == "" or _QUALIFIED.fullmatch(text) is not None


def is_image(text: str) -> bool:
    """Whether this can be the name of an image.

    >>> is_image("registry:5000/team/torch:2.1"), is_image("--privileged"), is_image("a b")
    (True, False, False)
    """
    return _IMAGE.fullmatch(text) is not None
