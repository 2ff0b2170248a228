"""Runs in a virtual machine with cgroup v2, as root: uses limits as people do, and writes what it sees as JSON lines.

The cgroup of the dispatcher is made as systemd 254 makes it for our unit: the unit's, and one below it for its program.
What people do is done as the user `ann`. `test_limits_hold.py` starts this program and looks at what it writes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainmaster.sdk.run.run import Run

ANN = 2001
PYTHON = "/opt/trainmaster/bin/python"
HOME = Path("/home/ann")
WORKSPACE = HOME / "workspace"
TOP = Path("/sys/fs/cgroup/places")
UNIT = TOP / "trainmaster-server.service"
PROGRAMS = UNIT / "trainmaster-programs"
# Names the cgroup of a limited run that goes on, until root has looked at it.
LIMITED = HOME / "limited"
SECONDS = 400.0

OWN_CGROUP = """
import os
own = [line[3:] for line in open('/proc/self/cgroup').read().splitlines() if line.startswith('0::')][0]
place = '/sys/fs/cgroup' + own
def show(name): return open(os.path.join(place, name)).read().split()
"""
WAITS = "import os, time\nprint('waits', flush=True)\nwhile not os.path.exists('open'):\n    time.sleep(0.1)\n"
SCRIPTS = {
    "waits": WAITS,
    "eats": "held = []\nfor _ in range(200):\n    held.append(b'x' * (1 << 20))\nprint('ate it all')\n",
    # Until the kernel has throttled its four processes.
    "burns": OWN_CGROUP
    + """
import json, time
workers = []
for _ in range(4):
    worker = os.fork()
    if worker == 0:
        while True: pass
    workers.append(worker)
def count(): return int(dict(zip(show('cpu.stat')[::2], show('cpu.stat')[1::2]))['nr_throttled'])
until = time.monotonic() + 120
while not count() and time.monotonic() < until: time.sleep(0.1)
for worker in workers: os.kill(worker, 9)
print(json.dumps({'max': show('cpu.max'), 'throttled': count(), 'cpus': len(os.sched_getaffinity(0))}))
""",
    "places": OWN_CGROUP + "print(own, *show('memory.max'), *show('cpu.max'))\n",
}


def report(name: str, **facts: Any) -> None:
    """Write one line of results."""
    print(json.dumps({"name": name, "at": round(time.monotonic()), **facts}), flush=True)


def wait_until(condition: Callable[[], Any], what: str) -> Any:
    """What the condition returns, once that is true."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise TimeoutError(what)


def main() -> None:
    """Make the places, then do everything as ann."""
    for path in (TOP, UNIT, PROGRAMS, TOP / "foreign", TOP / "container", TOP / "outside"):
        path.mkdir()
        if path == TOP:
            (path.parent / "cgroup.subtree_control").write_text("+cpu +memory")
            (path / "cgroup.subtree_control").write_text("+cpu +memory")
            continue
        for place in (path, path / "cgroup.procs", path / "cgroup.subtree_control"):
            os.chown(place, ANN, ANN)
    subprocess.run(["chown", "-R", str(ANN), "/home/ann"], check=True)
    start_dispatcher()
    look_at_foreign_place()
    look_at_container()
    look_at_unit()
    ann = os.fork()
    if ann == 0:
        become_ann(None)
        os.environ.update(variables())
        os._exit(try_to(use_limits))
    wait_until(
        lambda: LIMITED.exists() or os.waitid(os.P_PID, ann, os.WEXITED | os.WNOHANG | os.WNOWAIT), "a limited run"
    )
    if LIMITED.exists():
        start_again()
    os.waitpid(ann, 0)


def start_dispatcher() -> None:
    """As ann, in the place of our unit's programs. It takes long to start, so this comes first."""
    subprocess.Popen(
        [PYTHON, "-m", "trainmaster.dispatcher", str(WORKSPACE)],
        preexec_fn=lambda: become_ann(PROGRAMS),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        env=variables(),
    )


def start_again() -> None:
    """Start a program in the unit while a limited run goes on, as systemd 254 does."""
    again = subprocess.Popen(["sleep", "1000"], preexec_fn=lambda: become_ann(PROGRAMS))
    report("started again", events=Path(LIMITED.read_text(), "cgroup.events").read_text().split())
    again.kill()
    again.wait()
    LIMITED.unlink()


def variables() -> dict[str, str]:
    return {"HOME": "/home/ann", "TRAINMASTER_HOME": "/home/ann/home", "PATH": "/opt/trainmaster/bin:/usr/bin:/bin"}


def become_ann(place: Path | None) -> None:
    """Join a cgroup, and give up the rights of root."""
    if place is not None:
        (place / "cgroup.procs").write_text(str(os.getpid()))
    os.setgroups([])
    os.setresgid(ANN, ANN, ANN)
    os.setresuid(ANN, ANN, ANN)


# What a program of ours sees of its place.
LOOK = """
import json
from trainmaster.job.agent.limits import Limits
from trainmaster.shared.node_limits import find_enforced, why_not
limits = Limits(1, 1 << 27)
found = find_enforced(limits)
print(json.dumps({"enforced": found, "why_not": why_not("memory"), "own": open("/proc/self/cgroup").read().strip()}))
"""


def look_at_foreign_place() -> None:
    """Another program is in the cgroup."""
    place = TOP / "foreign"
    other = subprocess.Popen(["sleep", "1000"], preexec_fn=lambda: become_ann(place))
    done = subprocess.run([PYTHON, "-c", LOOK], preexec_fn=lambda: become_ann(place), capture_output=True, check=True)
    other.kill()
    other.wait()
    report("foreign", **json.loads(done.stdout))


def look_at_container() -> None:
    """The first process of a container, whose cgroup is the root of its namespace."""
    place = TOP / "container" / "cgroup.procs"
    # `unshare` itself is outside of the namespaces, and shown there as 0.
    mount = "umount -l /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup || exit 1"
    wait = "while grep -qx 0 /sys/fs/cgroup/cgroup.procs; do sleep 0.1; done"
    inside = f"{mount}; {wait}; exec setpriv --reuid={ANN} --regid={ANN} --clear-groups {PYTHON} -c '{LOOK}'"
    words = ["unshare", "--cgroup", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", inside]
    container = subprocess.Popen(
        words, preexec_fn=lambda: place.write_text(str(os.getpid())), stdout=subprocess.PIPE, text=True
    )
    children = Path(f"/proc/{container.pid}/task/{container.pid}/children")
    wait_until(lambda: children.read_text(), "the container")
    (TOP / "outside" / "cgroup.procs").write_text(str(container.pid))
    output, _ = container.communicate()
    report("container", **json.loads(output))


def look_at_unit() -> None:
    """A program in our unit, under the systemd of this machine. It is killed while a process of a run goes on."""
    subprocess.run(["systemctl", "start", "trainmaster-server.service"], check=True)
    first = wait_until(lambda: read_json(Path("/tmp/first.json")), "the unit")
    os.kill(first["pid"], signal.SIGKILL)
    second = wait_until(lambda: read_json(Path("/tmp/second.json")), "the unit's next program")
    version = subprocess.run(["systemctl", "--version"], capture_output=True, check=True, text=True).stdout.split()[1]
    report("unit", systemd=int(version), first=first, second=second, goes_on=os.path.exists(f"/proc/{first['script']}"))
    subprocess.run(["systemctl", "stop", "trainmaster-server.service"], check=True)
    os.kill(first["script"], signal.SIGKILL)


def read_json(path: Path) -> dict[str, Any] | None:
    """What is in a file, or None if it is not there yet."""
    return dict(json.loads(path.read_text())) if path.exists() else None


def try_to(use: Callable[[], None]) -> int:
    """Do it, and write what went wrong."""
    try:
        use()
    except BaseException:  # noqa: BLE001 - the test shows it
        report("error", text=traceback.format_exc()[-3000:])
        return 1
    return 0


class Person:
    """Ann, with her workspace open."""

    def __init__(self) -> None:
        from trainmaster import Experiment, Workspace

        wait_for_dispatcher()
        self.experiment = Experiment(Workspace(path=WORKSPACE), "limits")

    def submit(self, name: str, **settings: Any) -> Run:
        """Submit one of the scripts."""
        from trainmaster import Estimator

        source = HOME / name
        source.mkdir(exist_ok=True)
        (source / "train.py").write_text(SCRIPTS[name])
        place = {"compute_target": "small", "user_managed": True}
        run = self.experiment.submit(Estimator(str(source), entry_script="train.py", **place, **settings))
        report("submitted", run=run.id, script=name)
        return run

    def claim(self, run: Run) -> dict[str, Any]:
        """Wait for a script that waits; returns the claim of its agent."""
        path = WORKSPACE / "runs" / run.id / "nodes" / "0" / "agent.json"
        wait_until(lambda: path.exists() and "waits" in read_log(run), "the script")
        return dict(json.loads(path.read_text()))

    def tell(self, name: str, run: Run) -> None:
        """Wait for the end of a run, and report it, with what is left of its cgroups."""
        run.wait_for_completion(show_output=False, raise_on_error=False)
        details = run.get_details()
        facts = {key: details.get(key) for key in ("status", "error", "warnings", "properties")}
        report(name, **facts, log=read_log(run), left=[path.name for path in UNIT.glob(f"trainmaster-{run.id}-*")])


def read_log(run: Run) -> list[str]:
    """The lines of all logs of a run."""
    logs = run.get_details_with_logs()["logFiles"]
    return [line for name in sorted(logs) for line in logs[name].splitlines()]


def wait_for_dispatcher() -> None:
    """The SDK would start one in the cgroup of this program, and not wait as long as it takes here."""
    from trainmaster.shared.dispatcher_socket import try_line
    from trainmaster.shared.folders import WorkspaceFolder

    wait_until(lambda: try_line(WorkspaceFolder(WORKSPACE)), "the dispatcher")


def use_limits() -> None:
    """What ann does."""
    from trainmaster.sdk.estimators.distributed_training import Gloo

    ann = Person()
    beside, eats = ann.submit("waits"), ann.submit("eats")
    cgroup = Path(ann.claim(beside)["cgroup"])
    ann.tell("eats", eats)
    report("beside", status=beside.get_status())
    ann.tell("burns", ann.submit("burns"))
    ann.tell("places", ann.submit("places", node_count=2, distributed_training=Gloo()))
    part = LIMITED.with_suffix(".part")
    part.write_text(str(cgroup))
    part.rename(LIMITED)
    wait_until(lambda: not LIMITED.exists(), "the start of another program")
    lost = ann.submit("waits")
    os.kill(ann.claim(lost)["pid"], signal.SIGKILL)
    ann.tell("agent killed", lost)
    os.kill(int((WORKSPACE / "dispatcher.lock").read_text()), signal.SIGKILL)
    (WORKSPACE / "runs" / beside.id / "code" / "open").touch()
    wait_until(lambda: not cgroup.exists(), "the end of the cgroup")
    wait_for_dispatcher()
    ann.tell("dispatcher killed", beside)


if __name__ == "__main__":
    code = try_to(main)
    report("end", code=code)
    sys.stdout.flush()
    os.sync()
    Path("/proc/sysrq-trigger").write_text("o")
