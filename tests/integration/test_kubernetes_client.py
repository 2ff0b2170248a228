"""The client of Kubernetes against a real API server."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import sys
from pathlib import Path

import pytest
import yaml
from tests.cluster.kubernetes_client import make_pod, name_of, open_client, state_of
from tests.conftest import until

import trainmaster
from trainmaster.engines.kubernetes.api import ApiError
from trainmaster.engines.kubernetes.watch import watch

ACCOUNT = "trainmaster-tests"


@contextlib.asynccontextmanager
async def _as_administrator(namespace):
    async with open_client(namespace.cluster.kubeconfig, namespace) as api:
        yield api


def _write_config(path, namespace, user):
    """A kubeconfig for the same cluster with another user."""
    document = yaml.safe_load(Path(namespace.kubeconfig).read_text())
    document["users"][0]["user"] = user
    path.write_text(yaml.safe_dump(document))
    return path


def _token(namespace):
    return yaml.safe_load(Path(namespace.kubeconfig).read_text())["users"][0]["user"]["token"]


async def _name_of_user(api):
    """Who the server believes we are: it says so when it refuses."""
    with pytest.raises(ApiError) as caught:
        await api.get("/api/v1/namespaces/kube-system/secrets")
    assert caught.value.status == 403 and "deploy/kubernetes/role.yaml" in caught.value.hint
    return caught.value.cause.split('User "')[1].split('"')[0]


# Credentials


def test_the_token_of_a_service_account(kubernetes_namespace):
    async def scene():
        async with open_client(kubernetes_namespace.kubeconfig, kubernetes_namespace) as api:
            assert await api.exists("/apis/apps/v1")
            assert not await api.exists("/apis/apps/v99")
            await api.list_objects(api.pods)
            assert await _name_of_user(api) == f"system:serviceaccount:{kubernetes_namespace.name}:{ACCOUNT}"

    asyncio.run(scene())


def test_a_client_certificate(kubernetes_namespace, tmp_path):
    pki = kubernetes_namespace.cluster.state / "pki"
    files = {"client-certificate": str(pki / "admin.crt"), "client-key": str(pki / "admin.key")}
    data = {f"{key}-data": base64.b64encode(Path(path).read_bytes()).decode() for key, path in files.items()}

    async def scene():
        for user in (files, data):
            config = _write_config(tmp_path / "config", kubernetes_namespace, user)
            async with open_client(config, kubernetes_namespace) as api:
                # The administrator may read what the service account may not.
                await api.get("/api/v1/namespaces/kube-system/secrets")

    asyncio.run(scene())


def test_a_token_file_that_is_replaced(kubernetes_namespace, tmp_path):
    file = tmp_path / "token"
    file.write_text("not-a-token")
    config = _write_config(tmp_path / "config", kubernetes_namespace, {"tokenFile": "token"})

    async def scene():
        async with open_client(config, kubernetes_namespace) as api:
            with pytest.raises(ApiError) as caught:
                await api.list_objects(api.pods)
            assert (caught.value.status, caught.value.reason) == (401, "Unauthorized")
            file.write_text(_token(kubernetes_namespace) + "\n")
            await api.list_objects(api.pods)

    asyncio.run(scene())


def test_a_credential_plugin(kubernetes_namespace, tmp_path):
    version = "client.authentication.k8s.io/v1beta1"
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": _token(kubernetes_namespace)}}
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!/bin/sh\necho \"$1\" >> {tmp_path}/calls\necho '{json.dumps(answer)}'\n")
    plugin.chmod(0o700)
    user = {"exec": {"apiVersion": version, "command": "./plugin", "args": ["get-token"]}}
    config = _write_config(tmp_path / "config", kubernetes_namespace, user)

    async def scene():
        async with open_client(config, kubernetes_namespace) as api:
            await asyncio.gather(*(api.list_objects(api.pods) for _ in range(5)))
            assert (await _name_of_user(api)).endswith(f":{ACCOUNT}")

    asyncio.run(scene())
    assert (tmp_path / "calls").read_text() == "get-token\n"


_IN_POD = """
import asyncio, sys
from trainmaster.engines.kubernetes.access import read_access
from trainmaster.engines.kubernetes.api import Api

async def main():
    api = Api(read_access({}))
    items, version = await api.list_objects(api.pods, reduce=lambda pod: pod["metadata"]["name"])
    print(api.namespace, *items)
    await api.close()

asyncio.run(main())
"""


def test_inside_of_a_pod(kubernetes_namespace):
    """This Python, with this Trainmaster, in a pod: the paths of this machine are mounted at the same places."""
    source = str(Path(trainmaster.__file__).parents[1])
    places = {sys.prefix, sys.base_prefix, source, "/usr", "/lib", "/lib64"}
    kept = [place for place in sorted(places) if os.path.isdir(place) and not _is_below_another(place, places)]
    pod = make_pod(
        "inside",
        [sys.executable, "-c", _IN_POD],
        serviceAccountName=ACCOUNT,
        volumes=[{"name": f"v{number}", "hostPath": {"path": place}} for number, place in enumerate(kept)],
        container={
            "volumeMounts": [
                {"name": f"v{number}", "mountPath": place, "readOnly": True} for number, place in enumerate(kept)
            ],
            "env": [{"name": "PYTHONPATH", "value": source}, {"name": "HOME", "value": "/none"}],
        },
    )
    kubernetes_namespace.kubectl("apply", "--filename", "-", text=json.dumps(pod))

    def phase():
        found = json.loads(kubernetes_namespace.kubectl("get", "pod", "inside", "--output", "json"))
        return found["status"]["phase"] in ("Succeeded", "Failed") and found["status"]["phase"]

    ended = until(phase, seconds=120, what="the end of the pod")
    printed = kubernetes_namespace.kubectl("logs", "inside")
    assert ended == "Succeeded", printed
    namespace, *names = printed.split()
    assert namespace == kubernetes_namespace.name
    assert "inside" in names


def _is_below_another(place, places):
    return any(place != other and place.startswith(f"{other}/") for other in places)


# Requests


def test_creating_changing_and_deleting(kubernetes_namespace):
    async def scene():
        async with _as_administrator(kubernetes_namespace) as api:
            one = f"{api.config_maps}/one"
            body = {"metadata": {"name": "one", "labels": {"a": "b"}}, "data": {"key": "1"}}
            assert (await api.create(api.config_maps, body))["data"] == {"key": "1"}
            with pytest.raises(ApiError) as caught:
                await api.create(api.config_maps, body)
            assert (caught.value.status, caught.value.reason) == (409, "AlreadyExists")
            assert 'configmaps "one" already exists' in caught.value.message
            assert (await api.patch(one, {"data": {"key": "2"}}))["data"] == {"key": "2"}
            added = [{"op": "add", "path": "/data/more", "value": "3"}]
            assert (await api.patch(one, added, kind="json"))["data"] == {"key": "2", "more": "3"}
            assert (await api.replace(one, body))["data"] == {"key": "1"}
            applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"applied": "4"}}
            query = {"fieldManager": "trainmaster", "force": "true"}
            assert (await api.patch(one, applied, kind="apply", **query))["data"]["applied"] == "4"
            with pytest.raises(ApiError) as caught:
                await api.create(api.config_maps, {"metadata": {"name": "Not A Name"}})
            assert (caught.value.status, caught.value.reason) == (422, "Invalid")
            await api.delete(one, propagation="Background")
            await api.delete(one)
            assert not await api.exists(one)

    asyncio.run(scene())


def test_lists_of_many_objects(kubernetes_namespace):
    async def scene():
        async with _as_administrator(kubernetes_namespace) as api:
            names = [f"many-{number}" for number in range(230)]
            bodies = [{"metadata": {"name": name, "labels": {"many": "yes"}}} for name in names]
            await asyncio.gather(*(api.create(api.config_maps, body) for body in bodies))
            found, version = await api.list_objects(api.config_maps, "many=yes", reduce=name_of)
            assert sorted(found) == sorted(names)
            assert version.isdecimal()
            one, _ = await api.list_objects(api.config_maps, fields="metadata.name=many-7")
            assert len(one) == 1
            await api.delete(api.config_maps, propagation="Background")

    asyncio.run(scene())


# Watches


def test_a_watch_sees_everything_that_happens_to_pods(kubernetes_namespace):
    async def scene():
        async with open_client(kubernetes_namespace.kubeconfig, kubernetes_namespace) as api:
            seen = []
            events = watch(api, api.pods, "made-by=test", fields="metadata.name=watched", reduce=state_of)
            async with contextlib.aclosing(events), asyncio.timeout(120):
                async for event in events:
                    seen.append((event.kind, event.objects))
                    if event.kind == "reset":
                        await api.create(api.pods, make_pod("watched"))
                    elif event.objects[0][1] == "Running" and event.kind == "modified":
                        await api.delete(f"{api.pods}/watched", grace=0)
                    elif event.kind == "deleted":
                        break
            assert seen[0] == ("reset", ())
            assert seen[1] == ("added", (("watched", "Pending"),))

    asyncio.run(scene())


def test_nothing_is_lost_between_two_watches(kubernetes_namespace):
    """The server ends every watch after a second, while objects are made all the time."""

    async def scene():
        async with _as_administrator(kubernetes_namespace) as api:
            names, seen, kinds = {f"often-{number}" for number in range(40)}, set(), set()

            async def create():
                for name in sorted(names):
                    await api.create(api.config_maps, {"metadata": {"name": name, "labels": {"often": "yes"}}})
                    await asyncio.sleep(0.1)

            creating = asyncio.create_task(create())
            events = watch(api, api.config_maps, "often=yes", reduce=name_of, watch_seconds=1)
            async with contextlib.aclosing(events), asyncio.timeout(120):
                async for event in events:
                    kinds.add(event.kind)
                    seen |= set(event.objects)
                    if seen == names:
                        break
            await creating
            assert kinds <= {"reset", "added"}

    asyncio.run(scene())
