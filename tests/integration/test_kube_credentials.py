"""Tokens and passwords, and programs that print them."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
from tests.scripted_server import ScriptedServer, client_of, status_body

from trainmaster.engines.kubernetes.access import read_access
from trainmaster.engines.kubernetes.api import Api, ApiError
from trainmaster.engines.kubernetes.kubeconfig import Cluster, Plugin, User
from trainmaster.engines.kubernetes.plugin import run_plugin
from trainmaster.job.errors import ComputeTargetException

_PODS = "/api/v1/namespaces/train/pods"


def test_credentials_that_the_server_refuses_are_read_again(tmp_path):
    token = tmp_path / "token"
    token.write_text("old\n")

    async def script(exchange):
        if exchange.request.headers["authorization"] == "Bearer new":
            await exchange.answer(200, {})
        else:
            token.write_text("new\n")
            await exchange.answer(401, status_body(401, "Unauthorized"))

    async def scene():
        async with client_of(tmp_path, script, User(token_file=token)) as (server, api):
            await api.create(_PODS, {})
            assert [r.headers["authorization"] for r in server.requests] == ["Bearer old", "Bearer new"]

        async with client_of(tmp_path, script, User(token="wrong")) as (server, api):
            with pytest.raises(ApiError) as caught:
                await api.get("/version")
            assert caught.value.status == 401 and "credentials" in caught.value.hint
            assert len(server.requests) == 1

    asyncio.run(scene())


def test_password_and_impersonation(tmp_path):
    async def script(exchange):
        await exchange.answer(200, exchange.request.headers)

    async def scene():
        user = User(username="me", password="ü:x", impersonation=(("Impersonate-User", "jane"),))
        async with client_of(tmp_path, script, user) as (_, api):
            headers = await api.get("/version")
            assert base64.b64decode(headers["authorization"].removeprefix("Basic ")).decode() == "me:ü:x"
            assert headers["impersonate-user"] == "jane"

    asyncio.run(scene())


_VERSION = "client.authentication.k8s.io/v1beta1"


def _write_plugin(folder, text, name="plugin"):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return path


def _credential(token, expires=""):
    status = {"token": token, **({"expirationTimestamp": expires} if expires else {})}
    return json.dumps({"apiVersion": _VERSION, "kind": "ExecCredential", "status": status})


def _plugin(command, **parts):
    return Plugin(str(command), _VERSION, place="config: users[0]", **parts)


_CLUSTER = Cluster("https://k8s.example")


def test_a_plugin_gets_arguments_variables_and_what_it_may_know(tmp_path):
    command = _write_plugin(tmp_path, f"echo \"$1 $PROFILE $KUBERNETES_EXEC_INFO\" >&2; echo '{_credential('t')}'; cat")
    seen = _write_plugin(tmp_path, f'exec {command} "$@" 2> {tmp_path}/seen', "outer")
    plugin = _plugin(seen, arguments=("get-token",), variables={"PROFILE": "dev"})
    # `cat` ends at once: there is no terminal and nothing to read.
    assert asyncio.run(run_plugin(plugin, _CLUSTER)).token == "t"
    argument, profile, told = (tmp_path / "seen").read_text().split(" ", 2)
    assert (argument, profile) == ("get-token", "dev")
    assert json.loads(told) == {
        "apiVersion": _VERSION,
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }


def test_plugins_that_cannot_be_used(tmp_path):
    missing = _plugin("no-such-plugin-anywhere", install_hint="Get it from the shop.")
    with pytest.raises(ComputeTargetException) as caught:
        asyncio.run(run_plugin(missing, _CLUSTER))
    assert "'no-such-plugin-anywhere' cannot be started: No such file" in caught.value.headline
    assert "config: users[0]" in caught.value.cause and caught.value.hint == "Get it from the shop."
    failing = _plugin(_write_plugin(tmp_path, "echo 'please log in' >&2; exit 3"))
    with pytest.raises(ComputeTargetException, match="ended with 3") as caught:
        asyncio.run(run_plugin(failing, _CLUSTER))
    assert caught.value.cause == "please log in"
    hanging = _plugin(_write_plugin(tmp_path, "exec sleep 1000"))
    with pytest.raises(ComputeTargetException, match=r"did not end within 0.2 seconds"):
        asyncio.run(run_plugin(hanging, _CLUSTER, seconds=0.2))


def test_a_plugin_runs_once_and_again_when_its_token_expires(tmp_path):
    past, later = ((datetime.now(UTC) + timedelta(hours=hours)).isoformat() for hours in (-1, 1))
    count = tmp_path / "count"
    command = _write_plugin(
        tmp_path,
        f'echo x >> {count}; n=$(wc -l < {count}); e="{later}"; [ $n = 1 ] && e="{past}"\n'
        f"echo '{_credential('TOKEN', 'EXPIRES')}' | sed \"s/TOKEN/t$n/; s/EXPIRES/$e/\"",
    )
    refused = set()

    async def script(exchange):
        token = exchange.request.headers["authorization"].removeprefix("Bearer ")
        await (exchange.answer(401, status_body(401)) if token in refused else exchange.answer(200, {"token": token}))

    async def scene():
        async with client_of(tmp_path, script, User(plugin=_plugin(command))) as (_, api):
            # The first answer had expired already, so the headers needed a second one.
            await api.get("/version")
            answers = await asyncio.gather(*(api.get("/version") for _ in range(5)))
            assert {answer["token"] for answer in answers} == {"t2"}
            assert len(count.read_text().split()) == 2
            refused.add("t2")
            answers = await asyncio.gather(*(api.get("/version") for _ in range(5)))
            # Many requests were refused, and the plugin ran once.
            assert {answer["token"] for answer in answers} == {"t3"}

    asyncio.run(scene())


def test_a_plugin_may_answer_with_a_certificate(tmp_path):
    (tmp_path / "client").mkdir()

    async def script(exchange):
        await exchange.answer(200, {})

    async def scene():
        client = ScriptedServer(tmp_path / "client", script)
        status = {"clientCertificateData": client.certificate.read_text(), "clientKeyData": client.key.read_text()}
        answer = {"apiVersion": _VERSION, "kind": "ExecCredential", "status": status}
        (tmp_path / "answer").write_text(json.dumps(answer))
        plugin = _plugin(_write_plugin(tmp_path, f"cat {tmp_path}/answer"))
        user = User(plugin=plugin)
        async with client_of(tmp_path, script, user, client_authority=client.certificate) as (server, api):
            await api.get("/version")
            assert "authorization" not in server.requests[0].headers

    asyncio.run(scene())


def test_the_service_account_of_a_pod(tmp_path, monkeypatch):
    """As a pod has it: an address in the environment, and files that are replaced while it runs."""

    async def script(exchange):
        await exchange.answer(200, {"token": exchange.request.headers["authorization"]})

    async def scene():
        server = ScriptedServer(tmp_path, script)
        async with server.listen():
            account = tmp_path / "account"
            account.mkdir()
            (account / "token").write_text("one")
            (account / "namespace").write_text("train")
            (account / "ca.crt").write_bytes(server.certificate.read_bytes())
            monkeypatch.setattr("trainmaster.engines.kubernetes.access.SERVICE_ACCOUNT", account)
            monkeypatch.setattr("trainmaster.engines.kubernetes.access._FILE_SECONDS", 0.0)
            port = server.address.rpartition(":")[2]
            environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port, "KUBECONFIG": "/none"}
            access = read_access({}, environ)
            assert access.namespace == "train"
            api = Api(access)
            assert await api.get("/version") == {"token": "Bearer one"}
            (account / "token").write_text("two")
            assert await api.get("/version") == {"token": "Bearer two"}
            await api.close()

    asyncio.run(scene())
