"""Services on a real cluster: deployed, asked, changed under load, killed and deleted."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.backends import folder_of
from tests.cluster.kubernetes import Cluster
from tests.cluster.kubernetes_namespace import CLAIM, ROLE, Namespace, create_target
from tests.conftest import open_workspace, until
from tests.service_bench import ASKED, SCORE, Bench, kill_dispatcher

from trainmaster import AksWebservice, Environment, Webservice, Workspace
from trainmaster.job.errors import ComputeTargetException, WebserviceException
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.shared.folders import WorkspaceFolder

pytestmark = pytest.mark.timeout(600)

KINDS = ("deployments", "replicasets", "services", "secrets", "pods", "horizontalpodautoscalers", "ingresses")
OURS = "trainmaster.io/workspace"
BROKEN = "def init():\n    raise ValueError('no such layer')\n\ndef run(data):\n    return 1\n"


@pytest.fixture(scope="module")
def namespace(kubernetes_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Namespace]:
    """A namespace whose account may do what `deploy/kubernetes` allows, and nothing else."""
    both = tmp_path_factory.mktemp("roles") / "roles.yaml"
    both.write_text("---\n".join((ROLE.read_text(), ROLE.with_name("role-services.yaml").read_text())))
    with kubernetes_cluster.create_namespace("services", both) as found:
        yield found


@pytest.fixture(scope="module")
def bench(namespace: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    place = tmp_path_factory.mktemp("services")
    (place / "project").mkdir()
    with open_workspace("services", place, None) as ws:
        _create_target(ws, namespace, "cluster", cache=f"claim={CLAIM}")
        yield Bench(ws, place / "project")


def _create_target(ws: Workspace, namespace: Namespace, name: str, **settings: Any) -> None:
    address = f"{namespace.cluster.network}.0.11"
    create_target(ws, name, namespace, service_type="NodePort", service_address=address, **settings)


def deploy(
    bench: Bench, name: str, factor: int = 2, target: str = "cluster", script: str = "score.py", **settings: Any
) -> Any:
    config = AksWebservice.deploy_configuration(**settings)
    service = bench.deploy(
        name,
        factor,
        bench.config(script, environment=Environment("plain")),
        deployment_config=config,
        deployment_target=ComputeTarget(bench.workspace, target),
    )
    if target == "cluster":
        until(lambda: is_reachable(service), what="the address on all nodes")
    return service


def is_reachable(service: Webservice) -> bool:
    """Whether the address answers. Nodes learn of a new port a moment after its pods are ready."""
    try:
        return post(service, "")[0] in (200, 401)
    except (OSError, http.client.HTTPException):
        return False


def post(service: Webservice, key: str) -> tuple[int, Any]:
    """A request to the address for users."""
    address = str(service.scoring_uri).removeprefix("http://").removesuffix("/score")
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request("POST", "/score", ASKED, {"Authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    return answer.status, json.loads(text) if answer.status == 200 else text.decode()


def names(namespace: Namespace, kind: str, labels: str) -> list[str]:
    return [each["metadata"]["name"] for each in namespace.objects(kind, labels)]


def left(namespace: Namespace, name: str) -> list[str]:
    """What the cluster and the claim still have of a service."""
    objects = [
        f"{kind}/{each}" for kind in KINDS for each in names(namespace, kind, OURS) if each.startswith(f"tms-{name}-")
    ]
    return objects + [str(path) for path in namespace.folder.glob(f"trainmaster-services/*/services/{name}-*")]


def pods_of(namespace: Namespace, name: str) -> list[str]:
    return names(namespace, "pods", f"trainmaster.io/service={name}")


def check_following(bench: Bench, service: Webservice) -> None:
    """What replicas add to their logs comes once."""
    call = bench.workspace.connection.call
    places = call("services.logs", name=service.name, lines=0)["places"]
    assert {log.partition("/")[0] for log in places} == {"deployment", "service", "pod"}
    sent = [f"followed-{number}" for number in range(3)]
    for each in sent:
        assert service.run(json.dumps({"data": [1], "id": each}))["result"] == [2]
    seen, deadline = "", time.monotonic() + 60
    while not all(each in seen for each in sent):
        assert time.monotonic() < deadline, seen
        answer = call("services.read_logs", name=service.name, places=places, seconds=5.0)
        seen, places = seen + answer["text"], answer["places"]
    assert [seen.count(each) for each in sent] == [1, 1, 1], seen
    assert "loaded" not in seen, "only what is new"


def test_from_deploy_to_delete(bench: Bench, namespace: Namespace) -> None:
    bench.script("prints.py", SCORE.replace("def run(data):", "def run(data):\n    print(data)"))
    service = deploy(bench, "whole-way", script="prints.py", cpu_cores=0.1, memory_gb=0.25)
    assert isinstance(service, AksWebservice) and service.state == "Healthy"
    assert service.run(ASKED)["result"] == [2, 4], "through the API server"
    first, second = service.get_keys()
    assert post(service, first)[1]["result"] == post(service, second)[1]["result"] == [2, 4]
    assert post(service, "wrong-key")[0] == 401
    assert "loaded 2 from" in service.get_logs()
    check_following(bench, service)

    service.regen_key("Primary")
    fresh = service.get_keys()[0]
    until(lambda: post(service, fresh)[0] == 200, what="the new key")
    assert post(service, first)[0] == 401
    assert service.run(ASKED)["result"] == [2, 4]

    (pod,) = namespace.objects("pods", "trainmaster.io/service=whole-way")
    resources = pod["spec"]["containers"][0]["resources"]
    assert resources["requests"] == {"cpu": "100m", "memory": "256Mi"} and resources["limits"] == {"memory": "256Mi"}

    service.delete()
    until(lambda: not left(namespace, "whole-way"), what="nothing of the service, in the cluster or on the claim")
    assert "whole-way" not in bench.workspace.webservices


def test_an_update_under_load_loses_no_request(bench: Bench, namespace: Namespace) -> None:
    service = deploy(bench, "updated", factor=1, auth_enabled=False, num_replicas=2)
    address, stop = service.scoring_uri, threading.Event()
    seen: set[int] = set()
    wrong: list[Any] = []

    def hammer() -> None:
        while not stop.is_set():
            try:
                status, answer = post(service, "")
                factor = answer["result"][0] if status == 200 else -1
            except (OSError, http.client.HTTPException) as error:
                status, factor, answer = 0, -1, repr(error)
            seen.add(factor)
            if factor not in (1, 3):
                wrong.append((status, answer))

    threads = [threading.Thread(target=hammer) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: 1 in seen, what="answers of the first model")
        service.update(models=[bench.model(3)])
        service.wait_for_deployment()
        until(lambda: 3 in seen, what="answers of the second model")
        until(lambda: len(pods_of(namespace, "updated")) == 2, what="the end of the old replicas")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong
    assert service.scoring_uri == address and post(service, "")[1]["result"] == [3, 6]

    bench.script("broken.py", BROKEN)
    service.update(inference_config=bench.config("broken.py", environment=Environment("plain")))
    with pytest.raises(WebserviceException, match="no such layer"):
        service.wait_for_deployment()
    assert service.state == "Failed" and post(service, "")[1]["result"] == [3, 6], "the one before goes on"
    service.delete()
    until(lambda: not left(namespace, "updated"), what="nothing of the service")


def test_a_service_that_never_answered_leaves_no_replicas(bench: Bench, namespace: Namespace) -> None:
    bench.script("broken.py", BROKEN)
    with pytest.raises(WebserviceException, match="no such layer"):
        deploy(bench, "broken", script="broken.py")
    until(lambda: not pods_of(namespace, "broken"), what="the end of its replicas")
    service = Webservice(bench.workspace, "broken")
    assert service.state == "Failed" and "no such layer" in service.get_logs()
    service.delete()
    until(lambda: not left(namespace, "broken"), what="nothing of the service")


def test_the_cluster_keeps_it_without_a_dispatcher(bench: Bench, namespace: Namespace) -> None:
    service = deploy(bench, "kept", auth_enabled=False)
    (before,) = pods_of(namespace, "kept")
    kill_dispatcher(WorkspaceFolder(folder_of(bench.workspace)))
    assert post(service, "")[0] == 200
    namespace.kubectl("delete", "pod", before, "--wait=false")
    until(lambda: is_available(namespace, "kept", other_than=before), what="another pod, without any dispatcher")
    again = Webservice(bench.workspace, "kept")
    assert again.state == "Healthy" and again.run(ASKED)["result"] == [2, 4], "another dispatcher has it"

    (deployment,) = namespace.objects("deployments", "trainmaster.io/service=kept")
    namespace.kubectl("delete", "deployment", deployment["metadata"]["name"])
    gone = deployment["metadata"]["uid"]
    until(lambda: uids(namespace, "kept") not in ([], [gone]), what="a Deployment in place of the deleted one")
    kill_dispatcher(WorkspaceFolder(folder_of(bench.workspace)))
    again.delete()
    until(lambda: not left(namespace, "kept"), what="nothing of the service")


def is_available(namespace: Namespace, name: str, other_than: str) -> bool:
    """Whether another pod is ready. One that ends still answers for some seconds, but gets no new requests."""
    found = namespace.objects("pods", f"trainmaster.io/service={name}")
    return any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for pod in found
        if pod["metadata"]["name"] != other_than
        for condition in pod["status"].get("conditions", ())
    ) and other_than not in names(namespace, "pods", f"trainmaster.io/service={name}")


def uids(namespace: Namespace, name: str) -> list[str]:
    return [each["metadata"]["uid"] for each in namespace.objects("deployments", f"trainmaster.io/service={name}")]


def test_replicas_that_follow_the_load_behind_an_ingress(bench: Bench, namespace: Namespace) -> None:
    host = "*.models.example.org"
    _create_target(bench.workspace, namespace, "ingress", cache=f"claim={CLAIM}", ingress_host=host)
    scaling = {"autoscale_enabled": True, "autoscale_min_replicas": 2, "autoscale_max_replicas": 4}
    service = deploy(bench, "scaled", target="ingress", auth_enabled=False, **scaling)
    (scaler,) = namespace.objects("horizontalpodautoscalers", OURS)
    assert (scaler["spec"]["minReplicas"], scaler["spec"]["maxReplicas"]) == (2, 4)
    until(lambda: len(pods_of(namespace, "scaled")) == 2, what="the least number of replicas")
    (ingress,) = namespace.objects("ingresses", OURS)
    assert ingress["spec"]["rules"][0]["host"] == "scaled.models.example.org"
    assert service.scoring_uri == "http://scaled.models.example.org/score"
    assert service.run(ASKED)["result"] == [2, 4], "the name is not known here; the API server reaches it"
    assert bench.workspace.connection.call("services.traffic", name="scaled")["requests"] >= 1
    with pytest.raises(ComputeTargetException, match="in use by service scaled"):
        bench.workspace.connection.call("targets.delete", name="ingress")
    service.delete()
    until(lambda: not left(namespace, "scaled"), what="nothing of the service")


def test_a_target_without_a_claim_is_refused_at_once(bench: Bench, namespace: Namespace) -> None:
    _create_target(bench.workspace, namespace, "no-claim")
    with pytest.raises(WebserviceException, match="has no claim") as refused:
        deploy(bench, "homeless", target="no-claim")
    assert "--cache claim=NAME" in str(refused.value)
    assert "homeless" not in bench.workspace.webservices


def test_every_right_is_needed(namespace: Namespace) -> None:
    rules = yaml.safe_load(ROLE.with_name("role-services.yaml").read_text())["rules"]
    given = {(kind, verb) for rule in rules for kind in rule["resources"] for verb in rule["verbs"]}
    used = namespace.used_rights()
    # Server-side apply of a new object needs both rights; the audit log names only one.
    created = {(kind, "create") for kind, verb in used if verb == "patch"}
    assert given - used - created == set()
