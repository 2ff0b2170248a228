"""The pure parts of the Kubernetes client: answers of plugins, errors in words, proxies."""

from __future__ import annotations

import json
import ssl
import time

import pytest
from tests.certificates import write_certificate

from trainmaster.engines.kubernetes.api_errors import ApiError, describe_path, explain_answer, explain_loss
from trainmaster.engines.kubernetes.kubeconfig import Cluster, Pem, Plugin
from trainmaster.engines.kubernetes.plugin import describe_call, read_answer
from trainmaster.engines.kubernetes.proxies import find_proxy
from trainmaster.engines.kubernetes.tls import make_ssl_context
from trainmaster.engines.remote.channel import Unreachable
from trainmaster.job.errors import ComputeTargetException

_V1 = "client.authentication.k8s.io/v1"
_PLUGIN = Plugin("aws", _V1, ("token",), place="config: users[0].user.exec.command")


def _answer(status, **parts):
    return json.dumps({"kind": "ExecCredential", "apiVersion": _V1, "status": status, **parts}).encode()


def test_answers_of_plugins():
    assert read_answer(_PLUGIN, _answer({"token": "t"})).token == "t"
    both = read_answer(_PLUGIN, _answer({"clientCertificateData": "c", "clientKeyData": "k"}))
    assert (both.token, both.certificate, both.key, both.is_valid) == ("", b"c", b"k", True)


@pytest.mark.parametrize(
    ("expires", "is_valid"),
    [("2018-03-05T17:30:20-08:00", False), ("2020-01-01T00:00:00Z", False), ("2999-01-01T00:00:00.123456Z", True)],
)
def test_expiry_of_plugins(expires, is_valid):
    credential = read_answer(_PLUGIN, _answer({"token": "t", "expirationTimestamp": expires}))
    assert credential.is_valid is is_valid
    assert (credential.expires > time.time()) is is_valid


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"token-in-clear", "it is not JSON"),
        (b"[]", "it is not an ExecCredential"),
        (_answer({"token": "t"}, kind="Pod"), "it is not an ExecCredential"),
        (_answer({"token": "t"}, apiVersion=f"{_V1}beta1"), "its apiVersion is"),
        (_answer(None), "it has no status"),
        (_answer({}), "neither a token nor a certificate"),
        (_answer({"token": ["t"]}), "status.token is not text"),
        (_answer({"clientKeyData": "k"}), "only one of"),
        (_answer({"token": "t", "expirationTimestamp": "soon"}), "expirationTimestamp is 'soon'"),
    ],
)
def test_bad_answers_of_plugins(answer, words):
    with pytest.raises(ComputeTargetException) as caught:
        read_answer(_PLUGIN, answer)
    assert words in caught.value.headline
    assert "users[0].user.exec.command" in caught.value.message and "aws token" in caught.value.hint
    assert "in-clear" not in caught.value.message


def test_what_plugins_learn():
    cluster = Cluster("https://x", Pem(data=b"ca"), "name", proxy_url="http://p", plugin_config={"a": 1})
    assert describe_call(_PLUGIN, cluster) == {
        "apiVersion": _V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }
    asking = Plugin("aws", f"{_V1}beta1", wants_cluster=True)
    assert describe_call(asking, cluster)["spec"]["cluster"] == {
        "server": "https://x",
        "tls-server-name": "name",
        "certificate-authority-data": "Y2E=",
        "proxy-url": "http://p",
        "config": {"a": 1},
    }
    assert "cluster" not in describe_call(Plugin("aws", f"{_V1}alpha1", wants_cluster=True), cluster)["spec"]


def test_errors_name_the_verb_the_object_and_the_words_of_the_server():
    body = {"kind": "Status", "message": 'pods "x" is forbidden: User "me" cannot delete', "reason": "Forbidden"}
    error = explain_answer("DELETE", "/api/v1/namespaces/train/pods/x", 403, {}, json.dumps(body).encode())
    assert (error.status, error.reason) == (403, "Forbidden")
    assert error.headline == "Kubernetes did not delete pods/x in namespace train: forbidden"
    assert error.cause == body["message"]
    assert "deploy/kubernetes/role.yaml" in error.hint
    # It travels to clients as one of the known errors.
    assert error.to_wire()["type"] == "ComputeTargetException"


def test_answers_that_are_not_of_kubernetes():
    error = explain_answer("POST", "/api/v1/namespaces/train/pods", 502, {}, b"<html>Bad Gateway</html>")
    assert (error.status, error.reason, error.cause) == (502, "", "<html>Bad Gateway</html>")


@pytest.mark.parametrize(
    ("headers", "details", "seconds"),
    [
        ({"retry-after": "3"}, {}, 3.0),
        ({}, {"retryAfterSeconds": 2}, 2.0),
        ({"retry-after": "99999"}, {}, 60.0),
        ({"retry-after": "-1"}, {}, 0.0),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, {}, 0.0),
        ({}, None, 0.0),
    ],
)
def test_pauses_that_the_server_asks_for(headers, details, seconds):
    body = json.dumps({"kind": "Status", "details": details}).encode()
    assert explain_answer("GET", "/version", 429, headers, body).retry_after == seconds


def test_paths_in_words():
    assert describe_path("/apis/apps/v1/namespaces/n/deployments/d/scale") == "deployments/d/scale in namespace n"
    assert describe_path("/api/v1/nodes/node1") == "nodes/node1"
    assert describe_path("/api/v1/namespaces/n") == "namespaces/n"


def test_losses_in_words():
    assert isinstance(explain_loss("https://x", TimeoutError()), Unreachable)
    assert "did not answer in time" in explain_loss("https://x", TimeoutError()).cause
    refused = ssl.SSLError(1, "alert")
    refused.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    for error in (ssl.SSLCertVerificationError(1, "x"), refused):
        # Trying again does not help.
        assert not isinstance(explain_loss("https://x", error), (Unreachable, ApiError))


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://k8s.example", {}, ""),
        ("https://k8s.example", {"HTTP_PROXY": "http://p"}, ""),
        ("http://k8s.example", {"http_proxy": "http://p"}, "http://p"),
        ("https://k8s.example", {"HTTPS_PROXY": "p:3128", "NO_PROXY": "other.example"}, "http://p:3128"),
        ("https://k8s.example", {"HTTPS_PROXY": "p", "NO_PROXY": "example"}, ""),
        ("https://k8s.example", {"HTTPS_PROXY": "p", "NO_PROXY": "x, .example"}, ""),
        ("https://notexample", {"HTTPS_PROXY": "p", "NO_PROXY": "example"}, "http://p"),
        ("https://k8s.example:6443", {"HTTPS_PROXY": "p", "NO_PROXY": "k8s.example:6443"}, ""),
        ("https://k8s.example", {"HTTPS_PROXY": "p", "NO_PROXY": "*"}, ""),
        ("https://10.1.2.3", {"HTTPS_PROXY": "p", "NO_PROXY": "10.0.0.0/8"}, ""),
        ("https://11.1.2.3", {"HTTPS_PROXY": "p", "NO_PROXY": "10.0.0.0/8,bad/8"}, "http://p"),
        ("https://127.0.0.1", {"HTTPS_PROXY": "p"}, ""),
        ("https://[::1]:6443", {"HTTPS_PROXY": "p"}, ""),
        ("https://localhost", {"HTTPS_PROXY": "p"}, ""),
    ],
)
def test_proxies_of_the_environment(server, environ, proxy):
    assert find_proxy(server, environ) == proxy


def test_certificates_never_reach_a_file(tmp_path):
    key, certificate = (path.read_bytes() for path in write_certificate(tmp_path))
    context = make_ssl_context(certificate, certificate, key, insecure=False)
    assert context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname
    assert len(context.get_ca_certs()) == 1
    assert make_ssl_context(certificate, b"", b"", insecure=True).verify_mode is ssl.CERT_NONE


def test_certificates_that_cannot_be_used(tmp_path):
    (tmp_path / "other").mkdir()
    _, certificate = (path.read_bytes() for path in write_certificate(tmp_path))
    other, _ = (path.read_bytes() for path in write_certificate(tmp_path / "other"))
    with pytest.raises(ComputeTargetException, match=r"client certificate .* cannot be used"):
        make_ssl_context(b"", certificate, other, insecure=False)
    with pytest.raises(ComputeTargetException, match=r"certificate-authority .* cannot be read"):
        make_ssl_context(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", b"", b"", insecure=False)


def test_a_key_with_a_passphrase_is_refused(tmp_path):
    from cryptography.hazmat.primitives import serialization

    own, certificate = write_certificate(tmp_path)
    key = serialization.load_pem_private_key(own.read_bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    with pytest.raises(ComputeTargetException, match="has a passphrase"):
        make_ssl_context(b"", certificate.read_bytes(), locked, insecure=False)
