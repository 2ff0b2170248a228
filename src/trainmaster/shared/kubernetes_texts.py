"""Settings of Kubernetes targets as people write them: `claim=shared,path=/mnt/shared`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.kubernetes_settings import Cache, CacheKind, Storage, Volume, VolumeKind
from trainmaster.shared.serialization import PlainDataError, from_plain
from trainmaster.shared.spelling import guess

T = TypeVar("T")

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_VOLUMES = ("claim", "node", "config", "secret")


def read_storage(given: str | Mapping[str, Any] | None) -> Storage | None:
    """
    >>> read_storage("claim=shared,path=/mnt/shared")
    Storage(claim='shared', path='/mnt/shared')
    >>> read_storage("shared")
    Storage(claim='shared', path='')
    """
    if not given:
        return None
    if isinstance(given, str):
        parts = _parts("storage", given, ("claim", "path"), first="claim")
        return Storage(parts.get("claim", ""), parts.get("path", ""))
    return _plain("storage", Storage, given)


def read_cache(given: str | Mapping[str, Any] | None) -> Cache:
    """
    >>> read_cache("claim=cache"), read_cache("node=/var/cache/trainmaster"), read_cache("none")
    (Cache(kind='claim', name='cache'), Cache(kind='node', name='/var/cache/trainmaster'), Cache(kind='none', name=''))
    """
    if not given or given == "none":
        return Cache()
    if isinstance(given, str):
        parts = _parts("cache", given, ("claim", "node"))
        if len(parts) != 1:
            raise _refusal("cache", given, "none, claim=NAME or node=/FOLDER")
        kind, name = next(iter(parts.items()))
        return Cache(cast(CacheKind, kind), name)
    return _plain("cache", Cache, given)


def read_volume(given: str | Mapping[str, Any] | Volume) -> Volume:
    """
    >>> read_volume("claim=data,path=/data,read-only")
    Volume(kind='claim', name='data', path='/data', read_only=True)
    """
    if isinstance(given, Volume):
        return given
    if not isinstance(given, str):
        return _plain("volumes", Volume, given)
    parts = _parts("volumes", given, (*_VOLUMES, "path", "read-only"))
    kinds = [name for name in parts if name in _VOLUMES]
    if len(kinds) != 1 or "path" not in parts or parts.get("read-only"):
        raise _refusal("volumes", given, "such as claim=data,path=/data or node=/mnt/fast,path=/scratch,read-only")
    kind = kinds[0]
    return Volume(cast(VolumeKind, kind), parts[kind], parts["path"], "read-only" in parts)


def read_toleration(given: str | Mapping[str, Any]) -> dict[str, Any]:
    """A toleration as kubectl writes taints: KEY[=VALUE][:EFFECT].

    >>> read_toleration("nvidia.com/gpu=present:NoSchedule")
    {'key': 'nvidia.com/gpu', 'operator': 'Equal', 'value': 'present', 'effect': 'NoSchedule'}
    >>> read_toleration("spot")
    {'key': 'spot', 'operator': 'Exists'}
    """
    if not isinstance(given, str):
        return dict(given)
    taint, colon, effect = given.partition(":")
    key, equals, value = taint.partition("=")
    if colon and effect not in _EFFECTS:
        raise ComputeTargetException(
            f"tolerations must be KEY[=VALUE][:EFFECT], not {given!r}",
            hint=f"{guess(effect, _EFFECTS)}Effects: {', '.join(_EFFECTS)}.",
        )
    found: dict[str, Any] = {"key": key, "operator": "Equal", "value": value} if equals else {}
    return {**(found or {"key": key, "operator": "Exists"}), **({"effect": effect} if colon else {})}


def read_pairs(name: str, given: Mapping[str, Any] | Sequence[str] | None) -> dict[str, str]:
    """
    >>> read_pairs("labels", ["team=vision"]), read_pairs("labels", {"team": "vision"})
    ({'team': 'vision'}, {'team': 'vision'})
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(key): str(value) for key, value in given.items()}
    wrong = next((text for text in given if not isinstance(text, str) or "=" not in text), None)
    if isinstance(given, str) or wrong is not None:
        raise _refusal(name, given if isinstance(given, str) else wrong, "a list of KEY=VALUE")
    return dict(text.partition("=")[::2] for text in given)


def _parts(name: str, text: str, known: Sequence[str], first: str = "") -> dict[str, str]:
    """The parts of `a=b,c=d`; the first may be a value alone, for the key `first`."""
    found: dict[str, str] = {}
    for number, part in enumerate(text.split(",")):
        key, equals, value = part.strip().partition("=")
        if not equals and first and number == 0:
            key, value = first, key
        if key not in known:
            raise ComputeTargetException(
                f"{name} has the unknown part {key!r}", hint=f"{guess(key, known)}Known: {', '.join(known)}."
            )
        found[key] = value
    return found


def _plain(name: str, kind: type[T], given: Mapping[str, Any]) -> T:
    try:
        return from_plain(kind, given, name)
    except PlainDataError as error:
        raise ComputeTargetException(f"{name} cannot be used", cause=str(error)) from None


def _refusal(name: str, value: object, rule: str) -> ComputeTargetException:
    return ComputeTargetException(f"{name} must be {rule}, not {value!r}")
