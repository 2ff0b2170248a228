"""Runs on hosts over SSH: what travels, what comes back, and connections that drop. Real sshd, real networks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cluster.hosts import HOME, PASSWORD, SHARED, Hosts
from tests.conftest import end_workspace, ended, run_folder, until

from trainmaster import (
    ComputeTarget,
    Environment,
    Estimator,
    Experiment,
    Gloo,
    Mpi,
    PyTorch,
    RemoteCompute,
    SshCompute,
    Workspace,
)
from trainmaster.environments.pythons import all_pythons
from trainmaster.job.errors import ComputeTargetException

# Long enough for a connection to be taken up again on a busy machine, and for hosts that are to be given up soon.
LOST_AFTER, SOON_LOST = 24, 10
HEAD = "import os, signal, socket, sys, time\nfrom trainmaster import Run\nrun = Run.get_context()\n"
LOG = "azureml-logs/70_driver_log.txt"


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with Hosts(tmp_path_factory.mktemp("cluster") / "hosts", 2) as made:
        yield made


@pytest.fixture(scope="module")
def ws(tmp_path_factory, hosts):
    workspace = Workspace.create("over-ssh", path=tmp_path_factory.mktemp("ssh") / "ws", show_output=False)
    names = [host.name for host in hosts]
    known = {"config_file": hosts.ssh_config, "lost_after_seconds": LOST_AFTER}
    ComputeTarget.create(workspace, "pair", SshCompute.configuration(names, **known))
    ComputeTarget.create(workspace, "sharing", SshCompute.configuration(names, shared_folder=f"{SHARED}/tm", **known))
    hasty = {**known, "lost_after_seconds": SOON_LOST}
    ComputeTarget.create(workspace, "hasty", SshCompute.configuration(names, **hasty))
    yield workspace
    end_workspace(workspace.path)


@pytest.fixture
def send(ws, tmp_path):
    numbers = iter(range(100))

    def submit(script, kind=Estimator, files=None, **settings):
        source = tmp_path / f"source{next(numbers)}"
        source.mkdir()
        for name, text in {"train.py": script, **(files or {})}.items():
            (source / name).write_text(text)
        if not {"environment_definition", "pip_packages"} & set(settings):
            settings["user_managed"] = True
        estimator = kind(str(source), entry_script="train.py", **{"compute_target": "pair", **settings})
        return Experiment(ws, "ssh").submit(estimator)

    return submit


def log(run, rank=None):
    name = LOG if rank is None else LOG.replace(".txt", f"_{rank}.txt")
    return run.get_details_with_logs()["logFiles"].get(name, "")


def left(hosts, run):
    return [command for host in hosts for command in host.processes(run.id)]


def at_work(run, ranks=(0,)):
    """Waits until all ranks have logged something."""
    until(lambda: set(run.get_metrics_by_rank()) >= set(ranks), what="all ranks at work")


COUNTING = (
    HEAD
    + """
for number in range(60):
    print('line', number)
    run.log('number', number)
    time.sleep(0.1)
os.makedirs('outputs', exist_ok=True)
open('outputs/end', 'w').write('reached')
"""
)


def test_cut_and_mended(send, hosts):
    """A connection that drops is taken up again: nothing is lost, nothing comes twice."""
    run = send(COUNTING)
    at_work(run)
    (host,) = [host for host in hosts if host.processes(run.id)]
    host.cut()
    seen = len(log(run).splitlines())
    until(lambda: "silent" in run.get_details().get("waitingFor", "") or _is_behind(run), what="that it is noticed")
    host.mend()
    assert ended(run)["status"] == "Completed"
    assert seen < 60
    assert log(run) == "".join(f"line {number}\n" for number in range(60))
    assert run.get_metrics()["number"] == list(range(60))
    assert "outputs/end" in run.get_file_names()


def _is_behind(run):
    """Whether the dispatcher has noted that the host is silent."""
    text = (run.experiment.workspace.path / "dispatcher.log").read_text()
    return f"run {run.id}, node 0:" in text


def test_lost_for_good(send, hosts):
    """A host that does not come back in time is named; nothing stays on the other, nor on it once it is back."""
    waiting = HEAD + "run.log('rank', 1)\ntime.sleep(3600)"
    run = send(waiting, PyTorch, node_count=2, distributed_training=Gloo(), compute_target="hasty")
    at_work(run, (0, 1))
    hosts[1].cut()
    try:
        details = ended(run)
        assert (details["status"], details["error"]["code"]) == ("Failed", "NodeAgentLost")
        assert details["error"]["message"].startswith(f"node 1 (host host2) did not answer for {SOON_LOST} seconds")
        assert (details["error"]["node"], details["error"]["host"]) == (1, "host2")
        assert hosts[0].processes(run.id) == []
        assert hosts[1].processes(run.id), "it goes on there: nobody could tell it to stop"
    finally:
        hosts[1].mend()
    until(lambda: not left(hosts, run), what="the end of what was left on the host")


def test_an_elastic_run_goes_on_without_a_lost_host(send, hosts):
    """The second host starts again at once; and once more, while the first one still does not answer."""
    script = (
        HEAD
        + """
attempt = os.environ['TRAINMASTER_ATTEMPT']
print('attempt', attempt, 'rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])
run.log('rank', int(os.environ['RANK']))
time.sleep(3600 if attempt == '1' else 0)
sys.exit(attempt == '2')
"""
    )
    elastic = {"node_count": 2, "distributed_training": Gloo(min_nodes=1), "max_retries": 1}
    run = send(script, PyTorch, compute_target="hasty", **elastic)
    at_work(run, (0, 1))
    hosts[0].cut()
    try:
        details = ended(run)
    finally:
        hosts[0].mend()
    assert details["status"] == "Completed", details["error"]
    codes = [(each.get("error") or {}).get("code") for each in details["attempts"]]
    assert codes == ["NodeAgentLost", "ScriptFailed", None]
    assert log(run) == "attempt 3 rank 0 of 1\n"
    until(lambda: not left(hosts, run), what="the end of what was left on the host")


def test_resume(send, hosts):
    """The checkpoint of a run goes to the hosts again, and so does its code; also from here to there."""
    script = (
        HEAD
        + """
place = 'outputs/checkpoint-' + os.environ['RANK']
start = int(open(place).read()) if os.path.exists(place) else 0
open(place, 'w').write(str(start + 2))
open('logs/seen-%s-%d' % (os.environ['RANK'], start), 'w').close()
print('from', start, os.environ.get('TRAINMASTER_RESUMED_FROM', 'nothing'), os.path.exists('part.txt'))
sys.exit(start == 0)
"""
    )
    settings = {"node_count": 2, "distributed_training": Gloo(), "files": {"part.txt": "code"}}
    first = send(script, PyTorch, **settings)
    assert ended(first)["status"] == "Failed" and log(first, 0) == "from 0 nothing True\n"
    second = first.resume()
    details = ended(second)
    assert details["status"] == "Completed", details["error"]
    assert [log(second, rank) for rank in (0, 1)] == [f"from 2 {first.id} True\n"] * 2
    names = second.get_file_names()
    assert {"outputs/checkpoint-0", "outputs/checkpoint-1", "logs/seen-1-0", "logs/seen-1-2"} <= set(names)
    # On one shared folder, and a third time.
    third = second.resume(settings={"target": "sharing"})
    details = ended(third)
    assert details["status"] == "Completed", details["error"]
    assert [log(third, rank) for rank in (0, 1)] == [f"from 4 {second.id} True\n"] * 2
    assert (run_folder(third).files / "outputs" / "checkpoint-1").read_text() == "6"
    assert left(hosts, third) == []


def test_environment_travels(send, hosts):
    """Packages, their scripts, and a Python that the host does not have; the second time nothing is sent."""
    system = set(hosts[0].run(["sh", "-c", "ls /usr/bin | grep -o '^python3[.][0-9]*$'"]).split())
    versions = [version for version in all_pythons() if f"python{version}" not in system and version >= "3.8"]
    assert versions, "this machine has no Python besides the system's"
    environment = Environment("travelling")
    environment.python.conda_dependencies.add_pip_package("cowsay==6.1")
    environment.python.conda_dependencies.set_python_version(versions[-1])
    script = """
import subprocess, sys, cowsay, ssl, sqlite3
print('%d.%d' % sys.version_info[:2], sys.prefix)
print(subprocess.check_output(['cowsay', '-t', 'hello']).decode())
"""
    first = send(script, environment_definition=environment)
    assert ended(first)["status"] == "Completed", first.get_details()["error"]["message"]
    lines = log(first).splitlines()
    version, prefix = lines[0].split()
    assert version == versions[-1]
    assert prefix.startswith(f"{HOME}/.trainmaster/hosts/")
    assert "| hello |" in lines[2]
    (host,) = [host for host in hosts if (host.home / ".trainmaster").exists() and list(_environments(host))]
    before = {path: path.stat().st_ino for path in _environments(host)}
    assert ended(send(script, environment_definition=environment))["status"] == "Completed"
    assert {path: path.stat().st_ino for path in _environments(host)} == before


def _environments(host):
    return host.home.glob(".trainmaster/hosts/*/environments/*")


def test_mpi(send, hosts):
    """mpirun on one host starts ranks on the other, though neither can log in to the other."""
    run = send(
        HEAD
        + """
from mpi4py import MPI
world = MPI.COMM_WORLD
print(world.rank, world.size, socket.gethostname(), world.allreduce(world.rank), os.environ['LOCAL_RANK'])
lines = [line.split() for line in open(os.environ['TRAINMASTER_HOSTFILE'])]
assert [slots for _, slots in lines] == ['slots=2', 'slots=2'], lines
assert lines[0][0] == os.environ['MASTER_ADDR'] != lines[1][0], lines
run.log('sum', world.allreduce(world.rank))
world.Barrier()
if world.rank == 3 and '--fail' in sys.argv:
    raise ValueError('the mistake')
world.Barrier()
""",
        node_count=2,
        distributed_training=Mpi(2),
        pip_packages=["mpi4py"],
    )
    details = ended(run)
    assert details["status"] == "Completed", details["error"]["message"]
    assert [log(run, rank) for rank in range(4)] == [
        f"{rank} 4 host{1 + rank // 2} 6 {rank % 2}\n" for rank in range(4)
    ]
    assert {rank: found["sum"] for rank, found in run.get_metrics_by_rank().items()} == dict.fromkeys(range(4), 6)
    assert left(hosts, run) == []


def test_mpi_rank_fails_elsewhere(send, hosts):
    run = send(
        HEAD
        + """
from mpi4py import MPI
if MPI.COMM_WORLD.rank == 1:
    raise ValueError('the mistake')
MPI.COMM_WORLD.Barrier()
""",
        node_count=2,
        distributed_training=Mpi(1),
        pip_packages=["mpi4py"],
    )
    error = ended(run)["error"]
    assert (error["code"], error["rank"], error["node"]) == ("ScriptFailed", 1, 1)
    assert "the mistake" in error["message"]
    assert left(hosts, run) == []


def test_shared_folder(send, hosts):
    """All nodes of a run work in one folder, and what the last of them writes comes back too."""
    run = send(
        HEAD
        + """
rank = os.environ['RANK']
open('seen_' + rank, 'w').close()
while not (os.path.exists('seen_0') and os.path.exists('seen_1')):
    time.sleep(0.05)
print(socket.gethostname())
if rank == '1':
    while not os.path.exists('../nodes/0/result.json'):
        time.sleep(0.05)
print('late', rank)
open('outputs/of_' + rank, 'w').write(rank)
""",
        PyTorch,
        node_count=2,
        distributed_training=Gloo(),
        compute_target="sharing",
    )
    details = ended(run)
    assert details["status"] == "Completed", details["error"]["message"]
    assert [log(run, rank) for rank in (0, 1)] == ["host1\nlate 0\n", "host2\nlate 1\n"]
    assert {"outputs/of_0", "outputs/of_1"} <= set(run.get_file_names())


def test_data(send, ws, tmp_path):
    """Data is brought to the host, and what the script adds to it comes back to the datastore."""
    store = ws.get_default_datastore()
    (tmp_path / "given" / "deep").mkdir(parents=True)
    (tmp_path / "given" / "deep" / "words").write_text("brought")
    store.upload(str(tmp_path / "given"), target_path="given", show_progress=False)
    script = """
import os, sys
source, mounted, uploaded = sys.argv[2::2]
text = open(os.path.join(source, 'deep', 'words')).read()
for place in (mounted, uploaded):
    open(os.path.join(place, 'result'), 'w').write(text + ' back')
"""
    for mode in ("as_mount", "as_download"):
        (ws.path / "datastore" / mode / "mounted").mkdir(parents=True)
        given = {
            "--source": getattr(store.path("given"), mode)(),
            "--mounted": store.path(f"{mode}/mounted").as_mount(),
            "--uploaded": store.path(f"{mode}/uploaded").as_upload(),
        }
        run = send(script, script_params=given)
        assert ended(run)["status"] == "Completed", run.get_details()["error"]["message"]
        for place in ("mounted", "uploaded"):
            store.download(str(tmp_path / "back"), prefix=f"{mode}/{place}", show_progress=False)
            assert (tmp_path / "back" / mode / place / "result").read_text() == "brought back"


def test_cancelled_on_the_way(send, ws, hosts, tmp_path):
    """A run that is cancelled while its data is on its way leaves nothing."""
    store = ws.get_default_datastore()
    big = tmp_path / "big"
    big.mkdir()
    with open(big / "zeros", "wb") as file:
        file.truncate(512 * 1024**2)
    (ws.path / "datastore" / "big").symlink_to(big)
    run = send("print(1)", script_params={"--big": store.path("big").as_mount()})
    until(lambda: "uploading the data" in run.get_details().get("waitingFor", ""), what="that it is on its way")
    run.cancel()
    assert ended(run)["status"] == "Canceled"
    for host in hosts:
        assert list(host.home.glob(f".trainmaster/hosts/*/runs/{run.id}")) == []
        until(lambda host=host: not host.processes("trainmaster"), what="the end of the connection")


def test_outputs_of_all_nodes(send):
    """Each host has a working folder of its own; where names are the same, the first node's file counts."""
    run = send(
        HEAD
        + """
rank = os.environ['RANK']
open('outputs/of_' + rank, 'w').write(rank)
open('outputs/same', 'w').write(rank)
open('elsewhere_' + rank, 'w').write(rank)
""",
        PyTorch,
        node_count=2,
        distributed_training=Gloo(),
    )
    details = ended(run)
    assert details["status"] == "Completed"
    assert [each["message"] for each in details["warnings"]] == [
        "The script left 2 files (2 B) outside of outputs/ and logs/: elsewhere_0 (1 B), elsewhere_1 (1 B). "
        "They were removed with the run's folder on its host. Write what you keep to outputs/."
    ]
    found = {
        name: (run_folder(run).files / name).read_text() for name in run.get_file_names() if name.startswith("out")
    }
    assert found == {"outputs/of_0": "0", "outputs/of_1": "1", "outputs/same": "0"}


def test_run_leaves_nothing_but_what_serves_the_next(send, hosts):
    run = send(HEAD + "print(os.environ['TRAINMASTER_RUN_FOLDER'])")
    assert ended(run)["status"] == "Completed"
    for host in hosts:
        assert list(host.home.glob(f".trainmaster/hosts/*/runs/{run.id}")) == []
        until(lambda host=host: not host.processes("trainmaster"), what="the end of the connection")


def test_remote_compute(ws, send, hosts):
    """v1's way to name one machine: an address, a user and a key."""
    with pytest.raises(ComputeTargetException, match=r"private key file .* does not exist"):
        RemoteCompute.attach_configuration(username="root", address=hosts[0].address, private_key_file="/no/such")
    with pytest.warns(UserWarning, match="the key of host root@.* is unknown"):
        configuration = RemoteCompute.attach_configuration(
            username="root", address=hosts[0].address, private_key_file=hosts.user_key
        )
        ComputeTarget.attach(ws, "box", configuration)
    # As people do who log in once by hand; their known_hosts is not touched here, so the run is refused.
    details = ended(send("print(1)", compute_target="box"))
    assert details["status"] == "Failed"
    assert "Log in once by hand with 'ssh -i" in details["error"]["message"]


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        ({"hosts": ["nobody-there"], "lost_after_seconds": 4}, "cannot be reached", "switched on"),
        ({"hosts": ["nonesuch.invalid"]}, "the name of host nonesuch.invalid is unknown", "HostName"),
        ({"username": "nobody"}, "refuses the login", "without a prompt"),
        ({"python": "python9"}, "has no 'python9'", "Install Python 3.6"),
        ({"folder": "/proc/none"}, "folder /proc/none cannot be written to", "folder="),
        ({"config_file": "empty"}, "the key of host .* is unknown", "compare the fingerprint"),
    ],
    ids=["unreachable", "unknown-name", "refused", "no-python", "read-only", "unknown-key"],
)
def test_refused(ws, hosts, tmp_path, change, message, hint):
    """A host that cannot be used says why when the target is made, and what to do."""
    given = {"hosts": [hosts[0].name], "config_file": hosts.ssh_config, **change}
    if given["config_file"] == "empty":
        (tmp_path / "empty").touch()
        given = {"hosts": [hosts[0].address], "config_file": str(tmp_path / "empty")}
    if given["hosts"] == ["nobody-there"]:
        given["hosts"] = [hosts[0].address.rpartition(".")[0] + ".99"]
    with pytest.raises(ComputeTargetException, match=message) as caught:
        SshCompute.configuration(**given).look(ws)
    assert hint in caught.value.message


@pytest.mark.parametrize(
    ("before", "error"),
    [
        ("echo hello; printf 'no end of line'", ""),
        ("echo This account is not available.; exit 1", "ended without starting 'python3'\nThis account is not"),
        ("exit 0", "ended without starting 'python3'\nIt ended with 0"),
        ("read name", "reads from its input"),
    ],
)
def test_what_comes_before(ws, hosts, before, error):
    """A login that says something before it comes to our program, asks something, or does not come to it."""
    authorized = hosts[0].home / ".ssh" / "authorized_keys"
    known = authorized.read_text()
    words = f'{before}; exec sh -c \\"$SSH_ORIGINAL_COMMAND\\"'
    authorized.write_text(f'command="{words}" {known}')
    try:
        configuration = SshCompute.configuration([hosts[0].name], config_file=hosts.ssh_config)
        if not error:
            assert configuration.look(ws)[0].name == hosts[0].name
            return
        with pytest.raises(ComputeTargetException) as caught:
            configuration.look(ws)
    finally:
        authorized.write_text(known)
    assert error in caught.value.message


def test_what_is_wrong_on_this_side(ws, hosts, tmp_path):
    """A key that others can read, and a configuration that ssh does not understand."""
    known = Path(hosts.ssh_config).read_text()
    (tmp_path / "key").write_text(Path(hosts.user_key).read_text())
    (tmp_path / "key").chmod(0o644)
    cases = {
        known.replace(hosts.user_key, str(tmp_path / "key")): "ssh does not use the key for host host1",
        f"Nonsense yes\n{known}": "ssh does not accept its configuration for host host1",
    }
    for text, headline in cases.items():
        (tmp_path / "config").write_text(text)
        with pytest.raises(ComputeTargetException) as caught:
            SshCompute.configuration([hosts[0].name], config_file=str(tmp_path / "config")).look(ws)
        assert caught.value.headline == headline


def test_changed_key(ws, hosts, tmp_path):
    """A host whose key is another than the known one is not talked to."""
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    key = " ".join((other.with_suffix(".pub")).read_text().split()[:2])
    (tmp_path / "known").write_text(f"{hosts[0].name},{hosts[0].address} {key}\n")
    config = tmp_path / "config"
    text = Path(hosts.ssh_config).read_text().replace(str(hosts.known_hosts), str(tmp_path / "known"))
    config.write_text(text)
    with pytest.raises(ComputeTargetException, match="has changed"):
        SshCompute.configuration([hosts[0].name], config_file=str(config)).look(ws)


def test_passphrase(ws, send, hosts, tmp_path):
    """A key with a passphrase: kept in the keyvault, told to nobody but ssh."""
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "s3cr3t words", "-f", str(key)], check=True)
    authorized = hosts[0].home / ".ssh" / "authorized_keys"
    authorized.write_text(authorized.read_text() + key.with_suffix(".pub").read_text())
    configuration = RemoteCompute.attach_configuration(
        username="root", address=hosts[0].name, private_key_file=str(key), private_key_passphrase="s3cr3t words"
    )
    configuration.config_file = hosts.ssh_config
    target = ComputeTarget.attach(ws, "locked", configuration)
    assert target.serialize()["cpus_per_node"] >= 1
    assert "s3cr3t" not in str(target.serialize())
    run = send(
        HEAD + "print(socket.gethostname(), [name for name in os.environ if 'SECRET' in name])", compute_target=target
    )
    assert ended(run)["status"] == "Completed", run.get_details()["error"]["message"]
    assert log(run) == "host1 []\n"


def test_password(ws, send, hosts, tmp_path):
    """v1's password: the right one logs in, the wrong one is told."""
    config = tmp_path / "config"
    config.write_text(
        f"Host *\n  HostName {hosts[1].address}\n  UserKnownHostsFile {hosts.known_hosts}\n  PubkeyAuthentication no\n"
    )

    def attach(password):
        described = RemoteCompute.attach_configuration(username="root", address="by-word", password=password)
        described.config_file = str(config)
        return ComputeTarget.attach(ws, "by-word", described)

    with pytest.warns(UserWarning, match="refuses the login"):
        attach("wrong")
    assert "refuses the login" in ended(send("print(1)", compute_target="by-word"))["error"]["message"]
    run = send(HEAD + "print(socket.gethostname())", compute_target=attach(PASSWORD))
    assert ended(run)["status"] == "Completed", run.get_details()["error"]["message"]
    assert log(run) == "host2\n"
    assert PASSWORD not in str(ComputeTarget(ws, "by-word").serialize())


def test_command_line(ws, hosts):
    """`compute create ssh NAME HOST...` asks the hosts and says what they are."""
    words = [sys.executable, "-m", "trainmaster.cli", "compute", "create", "ssh"]

    def run(*more):
        given = [*words, *more, "--workspace", str(ws.path)]
        return subprocess.run(given, capture_output=True, text=True, check=False)

    done = run("two", "host1", "host2", "--ssh-config", hosts.ssh_config)
    assert done.returncode == 0, done.stderr
    heading, first, second, last = done.stdout.splitlines()
    assert heading.split()[:3] == ["HOST", "ADDRESS", "PYTHON"]
    assert [line.split()[:2] for line in (first, second)] == [[host.name, host.address] for host in hosts]
    assert last.startswith("Target 'two' has 2 nodes with ")
    done = run("bad", "nonesuch.invalid")
    assert done.returncode != 0
    assert "the name of host nonesuch.invalid is unknown" in done.stderr
    assert "bad" not in ws.compute_targets
