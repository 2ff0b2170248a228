"""Files of runs on a real Kubernetes: resumed runs, caches, images that cannot be written to, and lost pods."""

from __future__ import annotations

import os

import pytest
from tests.cluster.kubernetes_namespace import CLAIM, create_target
from tests.conftest import end_workspace, ended, until

from trainmaster import Estimator, Experiment, Gloo, Workspace

HEAD = "import os, tempfile, time\nfrom trainmaster import Run\nrun = Run.get_context()\n"
LOG = "azureml-logs/70_driver_log.txt"


def more_ways(*ways):
    """Ways of files that only `make test-kubernetes` tries."""
    return ways if "KUBERNETES_IN_FULL" in os.environ else ()


@pytest.fixture(scope="module")
def sent(tmp_path_factory, kubernetes_namespace):
    """A workspace whose files are sent to pods."""
    workspace = Workspace.create("sent", path=tmp_path_factory.mktemp("sent") / "ws", show_output=False)
    create_target(workspace, "cluster", kubernetes_namespace)
    yield workspace
    end_workspace(workspace.path)
    kubernetes_namespace.wait_until_empty()


@pytest.fixture(scope="module")
def stored(kubernetes_namespace):
    """A workspace in a folder that pods see."""
    folder = kubernetes_namespace.folder
    workspace = Workspace.create("stored", path=folder / "workspace", show_output=False)
    create_target(workspace, "cluster", kubernetes_namespace, folder)
    yield workspace
    end_workspace(workspace.path)
    kubernetes_namespace.wait_until_empty()


@pytest.fixture
def send(tmp_path):
    runs = []

    def submit(workspace, script, files=None, **settings):
        source = tmp_path / f"source{len(runs)}"
        source.mkdir()
        for name, text in {"train.py": script, **(files or {})}.items():
            (source / name).write_text(text)
        settings = {"compute_target": "cluster", "user_managed": True, **settings}
        runs.append(Experiment(workspace, "files").submit(Estimator(str(source), entry_script="train.py", **settings)))
        return runs[-1]

    yield submit
    # A test that failed must not keep what the next one needs.
    for run in runs:
        run.cancel()
    for run in runs:
        ended(run)


def log(run, rank=None):
    name = LOG if rank is None else LOG.replace(".txt", f"_{rank}.txt")
    return run.get_details_with_logs()["logFiles"].get(name, "")


def completed(run):
    details = ended(run)
    assert details["status"] == "Completed", f"{details.get('error')} {details.get('attempts')}\n{log(run)}"
    return details


RESUMES = (
    HEAD
    + """
place = 'outputs/checkpoint-' + os.environ['RANK']
start = int(open(place).read()) if os.path.exists(place) else 0
open(place, 'w').write(str(start + 2))
print('from', start, os.environ.get('TRAINMASTER_RESUMED_FROM', 'nothing'), os.path.exists('part.txt'))
"""
)


@pytest.mark.parametrize("way", ["sent", "stored"])
def test_resume(send, request, way):
    """The pods of the second run begin with the checkpoints and the code of the first one."""
    workspace = request.getfixturevalue(way)
    first = send(workspace, RESUMES, {"part.txt": "code"}, node_count=2, distributed_training=Gloo())
    completed(first)
    assert log(first, 0) == "from 0 nothing True\n"
    second = first.resume()
    completed(second)
    assert [log(second, rank) for rank in (0, 1)] == [f"from 2 {first.id} True\n"] * 2
    assert {"outputs/checkpoint-0", "outputs/checkpoint-1"} <= set(second.get_file_names())


@pytest.mark.parametrize("kind", ["claim", "node"])
def test_cached_environment(send, sent, kubernetes_namespace, tmp_path, kind):
    """The second run uses the environment that the first one has left in the cache: nothing of it is sent again."""
    cache = tmp_path / "cache" if kind == "node" else kubernetes_namespace.folder
    name = f"caches-{kind}"
    create_target(sent, name, kubernetes_namespace, cache=f"node={cache}" if kind == "node" else f"claim={CLAIM}")
    settings = {"compute_target": name, "user_managed": False}
    completed(send(sent, "import sys; print(sys.prefix)", **settings))
    (site,) = cache.glob("*/environments/*/lib/python3.*/site-packages")
    (site / "left_in_the_cache.py").write_text("words = 'from the cache'\n")
    second = send(sent, "import left_in_the_cache\nprint(left_in_the_cache.words)", **settings)
    completed(second)
    assert log(second) == "from the cache\n"


WRITES = (
    HEAD
    + """
with tempfile.NamedTemporaryFile('w') as file:
    file.write('words')
with open(os.path.expanduser('~/settings'), 'w') as file:
    file.write('words')
try:
    open('/usr/new', 'w')
except OSError as error:
    print('user', os.getuid(), 'cannot write:', error.strerror)
with open('outputs/result.txt', 'w') as file:
    file.write('words')
run.log('written', 1)
"""
)
READ_ONLY = {"spec": {"containers": [{"name": "node", "securityContext": {"readOnlyRootFilesystem": True}}]}}


@pytest.mark.parametrize("way", ["sent", "stored"])
def test_images_that_cannot_be_written_to(send, request, kubernetes_namespace, way):
    """The script has a home and a folder for temporary files all the same."""
    workspace = request.getfixturevalue(way)
    # In the shared folder, pods are this user.
    other = {"run_as_user": 1234} if way == "sent" else {"storage": kubernetes_namespace.folder}
    create_target(workspace, "locked", kubernetes_namespace, pod_patch=READ_ONLY, **other)
    run = send(workspace, WRITES, compute_target="locked", user_managed=False)
    completed(run)
    assert log(run) == f"user {1234 if way == 'sent' else 0} cannot write: Read-only file system\n"
    assert run.get_metrics() == {"written": 1} and "outputs/result.txt" in run.get_file_names()


ELASTIC = (
    HEAD
    + """
place, attempt = 'outputs/checkpoint-' + os.environ['RANK'], int(os.environ['TRAINMASTER_ATTEMPT'])
print('attempt', attempt, 'of', os.environ['WORLD_SIZE'], 'from', open(place).read() if os.path.exists(place) else 0)
open(place, 'w').write(str(attempt))
run.log('attempt', attempt)
time.sleep(3600 if attempt == 1 else 0)
"""
)


@pytest.mark.parametrize("way", ["sent", *more_ways("stored")])
def test_an_elastic_run_goes_on_without_a_lost_pod(send, request, kubernetes_cluster, kubernetes_namespace, way):
    """The other one starts again from its checkpoint."""
    workspace = request.getfixturevalue(way)
    run = send(workspace, ELASTIC, node_count=2, distributed_training=Gloo(min_nodes=1))
    until(lambda: len(run.get_metrics_by_rank()) == 2, seconds=240, what="both ranks at work")
    pod = kubernetes_namespace.pods_of(run)[1]["metadata"]["name"]
    assert kubernetes_cluster.kill_container(kubernetes_namespace.name, pod)
    details = completed(run)
    assert [each["status"] for each in details["attempts"]] == ["Failed", "Completed"]
    assert log(run) == "attempt 2 of 1 from 1\n"


@pytest.mark.parametrize("way", ["stored", *more_ways("sent")])
def test_an_elastic_run_starts_with_the_pods_that_get_a_machine(
    send, request, kubernetes_cluster, kubernetes_namespace, way
):
    workspace = request.getfixturevalue(way)
    kubernetes_cluster.offer_gpus(1)
    storage = kubernetes_namespace.folder if way == "stored" else None
    create_target(workspace, "gpus", kubernetes_namespace, storage, gpus_per_node=1)
    script = "import os\nprint(os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n"
    elastic = Gloo(min_nodes=2, wait_seconds=2)
    run = send(workspace, script, compute_target="gpus", node_count=3, distributed_training=elastic)
    details = completed(run)
    assert [log(run, rank) for rank in (0, 1)] == ["0 of 2\n", "1 of 2\n"]
    assert len(details.get("attempts") or [1]) == 1
    assert "2 of 3 nodes" in str(details["warnings"])
