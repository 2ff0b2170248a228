"""All pods of a workspace in one namespace, kept up to date by one watch."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trainmaster.engines.kubernetes.api import Api
from trainmaster.engines.kubernetes.watch import Event, watch
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.dispatch")

Pod = Mapping[str, Any]

_KEPT_METADATA = ("name", "uid", "labels", "annotations", "creationTimestamp", "deletionTimestamp")
_KEPT_SPEC = ("nodeName", "schedulingGates", "activeDeadlineSeconds")
_KEPT_CONTAINER = ("name", "image", "resources")


def reduce_pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    """What the engine needs of a pod: a workspace may have thousands of them."""
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    containers = [_keep(each, _KEPT_CONTAINER) for each in spec.get("containers") or ()]
    return {
        "metadata": _keep(metadata, _KEPT_METADATA),
        "spec": {**_keep(spec, _KEPT_SPEC), "containers": containers},
        "status": pod.get("status") or {},
    }


def _keep(data: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: data[name] for name in names if name in data}


class PodWatch:
    """The pods with one label selector, by their names."""

    def __init__(self, api: Api, labels: str) -> None:
        self._api = api
        self._labels = labels
        self._pods: dict[str, Pod] = {}
        self._gone: dict[str, Pod] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_known = asyncio.Event()
        self._waiting: dict[str, set[asyncio.Event]] = {}
        """By the name of a pod, what is set when it changes: a change of one pod wakes only those who wait for it."""
        self._back_at = 0.0
        self.trouble = ""
        """Why the API server does not answer now; empty if it does."""

    def start(self) -> None:
        """Begins to watch, if it does not watch yet."""
        if self._task is None:
            self._task = start_task("watching pods", self._follow)

    async def wait_until_known(self) -> None:
        """Returns when the pods are known for the first time."""
        self.start()
        await self._is_known.wait()

    def get(self, name: str) -> Pod | None:
        """The pod of this name, if there is one."""
        return self._pods.get(name)

    def last_seen(self, name: str) -> Pod | None:
        """The pod of this name; if it is gone, as it was last seen."""
        return self._pods.get(name) or self._gone.get(name)

    @property
    def all(self) -> list[Pod]:
        return list(self._pods.values())

    @property
    def answering_for(self) -> float:
        """For how many seconds the API server has been answering; 0 while it does not."""
        if self.trouble or not self._is_known.is_set():
            return 0.0
        return time.monotonic() - self._back_at

    def add(self, pod: Pod) -> None:
        """Takes a pod that was just created, before the watch reports it."""
        known = self._pods.get(pod["metadata"]["name"])
        if known is None or known["metadata"].get("uid") != pod["metadata"].get("uid"):
            self._take(reduce_pod(pod))
            self._notify([pod["metadata"]["name"]])

    def forget(self, name: str) -> None:
        """Forgets a pod that is gone."""
        self._gone.pop(name, None)

    async def wait_for(self, names: Sequence[str], condition: Callable[[], bool], seconds: float) -> bool:
        """Waits until the pods of these names meet a condition, for up to `seconds`; returns whether they do."""
        with contextlib.suppress(TimeoutError), self.changes_of(names) as changed:
            async with asyncio.timeout(seconds):
                while not condition():
                    changed.clear()
                    await changed.wait()
        return condition()

    async def wait_for_change(self, names: Sequence[str], seconds: float) -> None:
        """Returns after the next change of one of these pods, or after `seconds`."""
        with contextlib.suppress(TimeoutError), self.changes_of(names) as changed:
            async with asyncio.timeout(seconds):
                await changed.wait()

    @contextlib.contextmanager
    def changes_of(self, names: Sequence[str]) -> Iterator[asyncio.Event]:
        """An event that is set by every change of one of these pods, and of what is known of the server."""
        changed = asyncio.Event()
        for name in names:
            self._waiting.setdefault(name, set()).add(changed)
        try:
            yield changed
        finally:
            for name in names:
                self._waiting[name].discard(changed)
                if not self._waiting[name]:
                    del self._waiting[name]

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _follow(self) -> None:
        async for event in watch(self._api, self._api.pods, labels=self._labels, reduce=reduce_pod):
            self._handle(event)

    def _handle(self, event: Event) -> None:
        if event.kind in ("added", "modified", "deleted"):
            pod = event.objects[0]
            if event.kind == "deleted":
                self._remove(pod)
            else:
                self._take(pod)
            self._notify([pod["metadata"]["name"]])
            return
        if event.kind == "away":
            self.trouble = event.error.headline if event.error is not None else "it does not answer"
            log.warning("Kubernetes: %s", self.trouble)
        else:
            self._see_server()
            if event.kind == "reset":
                self._replace_all(event.objects)
        self._notify(list(self._waiting))

    def _see_server(self) -> None:
        if self.trouble or not self._is_known.is_set():
            self._back_at = time.monotonic()
        self.trouble = ""

    def _replace_all(self, pods: tuple[Pod, ...]) -> None:
        names = {pod["metadata"]["name"] for pod in pods}
        for name in set(self._pods) - names:
            self._remove(self._pods[name])
        for pod in pods:
            self._take(pod)
        self._is_known.set()

    def _take(self, pod: Pod) -> None:
        name = pod["metadata"]["name"]
        self._gone.pop(name, None)
        self._pods[name] = pod

    def _remove(self, pod: Pod) -> None:
        name = pod["metadata"]["name"]
        self._gone[name] = pod
        self._pods.pop(name, None)

    def _notify(self, names: Sequence[str]) -> None:
        for name in names:
            for changed in self._waiting.get(name, ()):
                changed.set()
