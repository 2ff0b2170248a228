"""The patch of a target, merged into every pod at the end. Pure.

- Objects are merged key by key; null removes a key.
- Lists of these names are merged item by item: an item replaces what it names of the item with the same key, and
  further items are added. `{"$patch": "delete", "name": "x"}` removes one.

  containers, initContainers, volumes, env, imagePullSecrets   by name
  volumeMounts                                                 by mountPath
  tolerations                                                  by key
- All other lists are replaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.kubernetes_settings import OUR_PREFIX

CONTAINER = "node"
"""The name of the container in which a run executes."""
_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "volumeMounts": "mountPath",
    "tolerations": "key",
}
_DELETE = "$patch"
_FIXED_METADATA = ("name", "namespace", "generateName", "ownerReferences")
_FIXED_SPEC = ("restartPolicy", "hostname", "subdomain")
_FIXED_CONTAINER = ("command", "args")


def patch_pod(pod: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """The pod with the patch; refuses a patch by which its run would no longer be found or run."""
    unknown = sorted(set(patch) - {"metadata", "spec"})
    if unknown:
        raise _refusal(f"it has '{unknown[0]}'", 'A patch has "metadata", "spec" or both, as a pod has them.')
    patched: dict[str, Any] = merge(pod, patch)
    _check_unchanged(pod, patched)
    return patched


def merge(old: Any, new: Any, name: str = "") -> Any:
    """`old` with what `new` says; `name` is the key under which both are.

    >>> merge({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": None, "e": 3}, "d": [2]})
    {'a': {'c': 2, 'e': 3}, 'd': [2]}
    >>> merge({"env": [{"name": "A", "value": "1"}]}, {"env": [{"name": "B", "value": "2"}]})
    {'env': [{'name': 'A', 'value': '1'}, {'name': 'B', 'value': '2'}]}
    """
    if isinstance(new, Mapping):
        before = old if isinstance(old, Mapping) else {}
        merged = {key: deepcopy(value) for key, value in before.items() if new.get(key, value) is not None}
        for key, value in new.items():
            if value is not None:
                merged[key] = merge(before.get(key), value, key)
        return merged
    if name in _KEYS and isinstance(new, list) and isinstance(old, list):
        return _merge_list(old, new, _KEYS[name])
    return deepcopy(new)


def _merge_list(old: Sequence[Any], new: Sequence[Any], key: str) -> list[Any]:
    merged = [deepcopy(item) for item in old]
    for item in new:
        if not isinstance(item, Mapping):
            raise _refusal(f"{item!r} is not an object", f'Each item needs "{key}".')
        place = next((n for n, each in enumerate(merged) if each.get(key) == item.get(key)), None)
        if item.get(_DELETE) == "delete":
            merged = [each for n, each in enumerate(merged) if n != place]
        elif place is None:
            merged.append(merge({}, item))
        else:
            merged[place] = merge(merged[place], item)
    return merged


def _check_unchanged(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    for part, names in (("metadata", _FIXED_METADATA), ("spec", _FIXED_SPEC)):
        for name in names:
            if before[part].get(name) != after[part].get(name):
                raise _refusal(f"it changes {part}.{name}", "Trainmaster sets it for every run.")
    for kind in ("labels", "annotations"):
        if _ours(before, kind) != _ours(after, kind):
            raise _refusal(f"it changes {kind} that start with {OUR_PREFIX}", "By them, runs are found again.")
    was, now = _container(before), _container(after)
    if now is None:
        raise _refusal(f"it removes the container '{CONTAINER}'", "The run executes in it.")
    for name in _FIXED_CONTAINER:
        if was is None or was.get(name) != now.get(name):
            raise _refusal(
                f"it changes the {name} of the container '{CONTAINER}'",
                "The command starts Trainmaster's agent. To run something before it, add an init container.",
            )


def _ours(pod: Mapping[str, Any], kind: str) -> dict[str, Any]:
    found = pod["metadata"].get(kind) or {}
    return {key: value for key, value in found.items() if key.startswith(OUR_PREFIX)}


def _container(pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    containers: list[Mapping[str, Any]] = pod["spec"].get("containers") or []
    return next((each for each in containers if each.get("name") == CONTAINER), None)


def _refusal(cause: str, hint: str) -> ComputeTargetException:
    return ComputeTargetException("the pod patch of the target cannot be used", cause=cause, hint=hint)
