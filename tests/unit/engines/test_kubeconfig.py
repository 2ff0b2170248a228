"""Kubeconfig files, from what the documentation of Kubernetes says about them."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml

from trainmaster.engines.kubernetes.access import read_access
from trainmaster.engines.kubernetes.kubeconfig import find_files, read_kubeconfig
from trainmaster.job.errors import ComputeTargetException

_PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
_ENCODED = base64.b64encode(_PEM.encode()).decode()


def _config(cluster=None, user=None, context=None, **top):
    """A file with one context, `c`."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "cl", "cluster": {"server": "https://k8s.example:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "c", "context": {"cluster": "cl", "user": "u", **(context or {})}}],
        **top,
    }


def _write(path: Path, document) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return path


def _choose(tmp_path, document, context=""):
    return read_kubeconfig([_write(tmp_path / "config", document)]).choose(context)


def test_the_first_file_wins_key_by_key_and_entry_by_entry(tmp_path):
    one = {
        "clusters": [{"name": "shared", "cluster": {"server": "https://one"}}],
        "users": [{"name": "red-user", "user": {"token": "first"}}],
    }
    two = _config(
        clusters=[
            {"name": "shared", "cluster": {"server": "https://two", "tls-server-name": "dropped"}},
            {"name": "other", "cluster": {"server": "https://other"}},
        ],
        # "even if the second file has non-conflicting entries under red-user, discard them"
        users=[{"name": "red-user", "user": {"username": "dropped"}}],
        contexts=[
            {"name": "c", "context": {"cluster": "shared", "user": "red-user", "namespace": "train"}},
            {"name": "d", "context": {"cluster": "other", "user": "red-user"}},
        ],
    )
    three = _config(**{"current-context": "d"})
    files = [_write(tmp_path / name, text) for name, text in (("1", one), ("2", two), ("3", three))]
    config = read_kubeconfig([files[0], tmp_path / "missing", *files[1:]])
    context = config.choose()
    assert context.name == "c"
    assert context.namespace == "train"
    assert context.cluster.server == "https://one"
    assert context.cluster.tls_server_name == ""
    assert (context.user.token, context.user.username) == ("first", "")
    other = config.choose("d")
    assert (other.cluster.server, other.namespace) == ("https://other", "default")


def test_files_are_those_of_kubectl(tmp_path):
    assert find_files({"KUBECONFIG": "/a:/b:"}, tmp_path) == (Path("/a"), Path("/b"))
    assert find_files({"KUBECONFIG": ""}, tmp_path) == (tmp_path / ".kube/config",)


def test_relative_paths_begin_at_the_folder_of_their_file(tmp_path):
    user = {"client-certificate": "pki/me.crt", "client-key": "/abs/me.key", "tokenFile": "token"}
    plugin = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "./bin/plugin"}
    first = _config({"certificate-authority": "ca.crt"}, user)
    second = _config(
        users=[{"name": "p", "user": {"exec": plugin}}],
        contexts=[{"name": "p", "context": {"cluster": "cl", "user": "p"}}],
    )
    config = read_kubeconfig([_write(tmp_path / "a/config", first), _write(tmp_path / "b/config", second)])
    context = config.choose("c")
    assert context.cluster.authority.file == tmp_path / "a/ca.crt"
    assert context.user.certificate.file == tmp_path / "a/pki/me.crt"
    assert context.user.key.file == Path("/abs/me.key")
    assert context.user.token_file == tmp_path / "a/token"
    assert config.choose("p").user.plugin.command == str(tmp_path / "b/bin/plugin")


def test_a_plugin_without_a_slash_is_searched_in_path(tmp_path):
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "aws",
        "args": ["eks", "get-token"],
        "env": [{"name": "AWS_PROFILE", "value": "dev"}],
        "interactiveMode": "IfAvailable",
        "installHint": "Install it.\n",
        "provideClusterInfo": True,
    }
    extensions = [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me"}}]
    context = _choose(tmp_path, _config({"extensions": extensions}, {"exec": plugin}))
    read = context.user.plugin
    assert (read.command, read.arguments, dict(read.variables)) == ("aws", ("eks", "get-token"), {"AWS_PROFILE": "dev"})
    assert (read.install_hint, read.wants_cluster) == ("Install it.", True)
    assert context.cluster.plugin_config == {"audience": "me"}


def test_data_counts_before_files(tmp_path):
    user = {
        "client-certificate": "x.crt",
        "client-certificate-data": _ENCODED,
        "client-key": "x.key",
        "client-key-data": _ENCODED,
    }
    cluster = {"certificate-authority": "ca.crt", "certificate-authority-data": _ENCODED}
    context = _choose(tmp_path, _config(cluster, user))
    for pem in (context.cluster.authority, context.user.certificate, context.user.key):
        assert (pem.data, pem.file) == (_PEM.encode(), None)


def test_everything_about_a_cluster(tmp_path):
    cluster = {
        "server": "https://rancher.example/k8s/clusters/c-1/",
        "tls-server-name": "inner.example",
        "insecure-skip-tls-verify": True,
        "proxy-url": "socks5://proxy:1080",
    }
    read = _choose(tmp_path, _config(cluster)).cluster
    assert read.server == "https://rancher.example/k8s/clusters/c-1"
    assert (read.tls_server_name, read.insecure, read.proxy_url) == ("inner.example", True, "socks5://proxy:1080")


def test_impersonation_is_not_dropped(tmp_path):
    user = {"token": "t", "as": "jane", "as-groups": ["dev", "ops"], "as-user-extra": {"scopes": ["view"]}}
    assert _choose(tmp_path, _config(user=user)).user.impersonation == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-scopes", "view"),
    )


def test_a_password_of_digits_is_text(tmp_path):
    user = _choose(tmp_path, _config(user={"username": "me", "password": 1234})).user
    assert (user.username, user.password) == ("me", "1234")


def test_json_is_yaml(tmp_path):
    text = (
        '{"current-context": "", "contexts": [{"name": "x", "context": {"cluster": "y"}}], "clusters": [{"name": "y", '
    )
    text += '"cluster": {"server": "http://localhost:8080"}}]}'
    assert _choose(tmp_path, text, "x").cluster.server == "http://localhost:8080"


def test_secrets_are_not_printed(tmp_path):
    user = {"token": "secret2", "client-key-data": _ENCODED, "client-certificate-data": _ENCODED}
    context = _choose(tmp_path, _config({"proxy-url": "http://a:secret1@b"}, user))
    assert "secret" not in repr(context) and "AAAA" not in repr(context)


_PLUGIN = {"command": "x", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("a: [", ["is not valid YAML", "line 1"]),
        ("- a", ["is not a kubeconfig file", "a list"]),
        ({"clusters": {}}, ["clusters must be a list, not a mapping"]),
        ({"clusters": [1]}, ["clusters[0] must be a mapping, not a number"]),
        ({"contexts": [{"context": {}}]}, ["contexts[0].name is missing"]),
        ({"contexts": []}, ["has no current-context"]),
        (_config(**{"current-context": "z"}), ["the context 'z' is not in", "Contexts there: c."]),
        (_config(context={"cluster": "z"}), ["contexts[0].context.cluster names the cluster 'z'"]),
        (_config(context={"user": "z"}), ["contexts[0].context.user names the user 'z'"]),
        (_config(context={"cluster": None}), ["contexts[0].context.cluster is missing"]),
        (_config({"server": ""}), ["clusters[0].cluster.server is missing"]),
        (_config({"server": "k8s:6443"}), ["clusters[0].cluster.server is 'k8s:6443'", "https://"]),
        (_config({"certificate-authority-data": "???"}), ["cluster.certificate-authority-data is not base64"]),
        (_config({"certificate-authority-data": "aGk="}), ["certificate-authority-data has no PEM text"]),
        (
            _config({"insecure-skip-tls-verify": True, "certificate-authority-data": _ENCODED}),
            ["insecure-skip-tls-verify cannot be true together with a certificate-authority"],
        ),
        (_config({"insecure-skip-tls-verify": "yes"}), ["insecure-skip-tls-verify must be true or false, not text"]),
        (_config({"proxy-url": "ftp://x"}), ["proxy-url must be the address of a proxy"]),
        (_config(user={"token": ["x"]}), ["users[0].user.token must be text, not a list"]),
        (_config(user={"client-certificate": "x"}), ["users[0].user.client-key is missing"]),
        (_config(user={"client-key-data": _ENCODED}), ["users[0].user.client-certificate is missing"]),
        (_config(user={"username": "a", "token": "b"}), ["username cannot be used together with a token"]),
        (_config(user={"auth-provider": {"name": "gcp"}}), ["auth-provider (gcp) is not supported", "1.26", "exec"]),
        (_config(user={"as-groups": ["x"]}), ["users[0].user.as is missing"]),
        (_config(user={"exec": {}}), ["users[0].user.exec.apiVersion is missing"]),
        (_config(user={"exec": {**_PLUGIN, "apiVersion": "v2"}}), ["apiVersion is 'v2'", "v1beta1"]),
        (_config(user={"exec": {**_PLUGIN, "command": ""}}), ["users[0].user.exec.command is missing"]),
        (_config(user={"exec": {**_PLUGIN, "interactiveMode": "Always"}}), ["interactiveMode is 'Always'", "Never"]),
        (_config(user={"exec": {**_PLUGIN, "interactiveMode": "x"}}), ["interactiveMode is 'x'"]),
        (_config(user={"exec": {**_PLUGIN, "interactiveMode": None}}), ["interactiveMode is missing"]),
        (_config(user={"exec": {**_PLUGIN, "args": "a"}}), ["users[0].user.exec.args must be a list, not text"]),
        (_config(user={"exec": {**_PLUGIN, "args": [1]}}), ["users[0].user.exec.args[0] must be text"]),
        (_config(user={"exec": {**_PLUGIN, "env": [{}]}}), ["users[0].user.exec.env[0].name is missing"]),
    ],
)
def test_mistakes_name_the_file_and_the_key(tmp_path, document, words):
    with pytest.raises(ComputeTargetException) as caught:
        _choose(tmp_path, document)
    for word in [str(tmp_path / "config"), *words]:
        assert word in caught.value.message


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ComputeTargetException, match="there is no kubeconfig file"):
        read_kubeconfig([tmp_path / "none"])
    with pytest.raises(ComputeTargetException, match="none cannot be read: No such file"):
        read_kubeconfig([tmp_path / "none"], must_exist=True)
    with pytest.raises(ComputeTargetException, match="cannot be read: Is a directory"):
        read_kubeconfig([tmp_path])
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ComputeTargetException, match="is not text in UTF-8"):
        read_kubeconfig([tmp_path / "binary"])


def test_options_of_a_target_come_first(tmp_path):
    file = _write(tmp_path / "config", _config(context={"namespace": "train"}))
    environ = {"KUBECONFIG": str(file)}
    assert read_access({}, environ).namespace == "train"
    assert read_access({"namespace": "other"}, environ).namespace == "other"
    assert read_access({"kubeconfig": str(file)}, {"KUBECONFIG": "/none"}).server == "https://k8s.example:6443"
    with pytest.raises(ComputeTargetException, match="the context 'x' is not in"):
        read_access({"context": "x"}, environ)
    with pytest.raises(ComputeTargetException, match="does not run in a pod"):
        read_access({"in_cluster": True}, environ)
