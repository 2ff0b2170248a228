"""Limits of nodes hold where the kernel can enforce them: in a virtual machine that has cgroup v2 with controllers.

The machine boots once. `limits_program.py` runs in it, and each test looks at what it saw there.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.virtual_machine import INSTALLED, RESULTS, UNITS, VirtualMachine
from tests.conftest import open_workspace, stop_dispatcher

from trainmaster import ComputeTarget, LocalCompute
from trainmaster.shared.folders import WorkspaceFolder

SECONDS = 900
"""Without KVM a machine is ten times slower. Most of the time goes into starting Python programs."""
pytestmark = pytest.mark.timeout(SECONDS + 60)
PROGRAM = Path(__file__).with_name("limits_program.py")
OUR_UNIT = Path(__file__).resolve().parents[2] / "deploy" / "trainmaster-server.service"
USERS = "root:x:0:0:root:/root:/bin/sh\nann:x:2001:2001::/home/ann:/bin/sh\n"
UNIT = f"""
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
TimeoutStartSec=infinity
ExecStart={INSTALLED}/bin/python /opt/program.py
StandardOutput=file:{RESULTS}
StandardError=file:/dev/ttyS0
"""
# Stands for the server, which takes long to start there: makes the cgroup of a run, with a process in it.
PROGRAM_OF_UNIT = """
import json, os, signal, subprocess
from trainmaster.job.agent import cgroup
from trainmaster.job.agent.limits import Limits
from trainmaster.shared.node_limits import find_enforced, why_not
enforced = find_enforced(Limits(1, 1 << 27))
run = cgroup.path_for("run", 0)
facts = {"pid": os.getpid(), "enforced": enforced, "why_not": why_not("memory"), "run": run, "made": cgroup.make(run)}
join = lambda: cgroup.write(run + "/cgroup.procs", "0") or os._exit(1)
facts["script"] = subprocess.Popen(["sleep", "1000"], preexec_fn=join, start_new_session=True).pid
name = "/tmp/second.json" if os.path.exists("/tmp/first.json") else "/tmp/first.json"
with open(name + ".part", "w") as file:
    json.dump(facts, file)
os.rename(name + ".part", name)
signal.pause()
"""
DROP_IN = f"[Service]\nUser=ann\nGroup=ann\nExecStart=\nExecStart={INSTALLED}/bin/python /opt/trainmaster_program.py\n"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the program saw, by name."""
    machine = VirtualMachine(tmp_path_factory.mktemp("machine"))
    shutil.copy(PROGRAM, machine.file("/opt/program.py"))
    machine.file(f"{UNITS}/check.service").write_text(UNIT)
    machine.file("/etc/passwd").write_text(USERS)
    machine.file("/etc/group").write_text("root:x:0:\nann:x:2001:\n")
    shutil.copy(OUR_UNIT, machine.file(f"{UNITS}/{OUR_UNIT.name}"))
    machine.file(f"{UNITS}/{OUR_UNIT.name}.d/program.conf").write_text(DROP_IN)
    machine.file("/opt/trainmaster_program.py").write_text(PROGRAM_OF_UNIT)
    # Made here, because making a database takes long there.
    place = tmp_path_factory.mktemp("made")
    with open_workspace("limits", place, None) as workspace:
        limits = LocalCompute.configuration(nodes=4, cpus_per_node=1, memory_per_node="100MB", limit_cpus=True)
        ComputeTarget.create(workspace, "small", limits)
        workspace.connection.close()
        stop_dispatcher(WorkspaceFolder(place / "workspace"))
        shutil.copytree(place / "workspace", machine.file("/home/ann/workspace"), symlinks=True)
    lines = [json.loads(line) for line in machine.run(SECONDS)]
    errors = [line["text"] for line in lines if line["name"] == "error"]
    assert not errors, f"{errors[0]}\nafter {lines[:-2]}"
    return {line["name"]: line for line in lines}


def test_a_run_over_its_memory_fails_and_says_peak_and_limit(seen: dict[str, Any]) -> None:
    eats = seen["eats"]
    assert eats["status"] == "Failed", eats
    assert "ate it all" not in eats["log"]
    message = json.dumps(eats["error"])
    assert "OutOfMemory" in message
    assert "100" in message and "cgroup" in message
    assert eats["properties"]["trainmaster.limits"] == "1 CPU (by cgroup), 100 MB (by cgroup) per node"
    assert not eats["warnings"] and not eats["left"]


def test_a_run_beside_it_goes_on(seen: dict[str, Any]) -> None:
    assert seen["beside"]["status"] == "Running"


def test_four_processes_have_the_time_of_one_cpu(seen: dict[str, Any]) -> None:
    burns = seen["burns"]
    assert burns["status"] == "Completed", burns
    found = json.loads(burns["log"][-1])
    assert found["max"] == ["100000", "100000"]
    assert found["throttled"] > 0
    assert found["cpus"] == 2, "not held to one CPU by affinity"
    assert not burns["left"]


def test_each_node_has_its_own_cgroup(seen: dict[str, Any]) -> None:
    places = seen["places"]
    assert places["status"] == "Completed", places
    lines = sorted(line.split() for line in places["log"] if "trainmaster-" in line)
    assert [line[0][-2:] for line in lines] == ["-0", "-1"]
    assert [line[1:] for line in lines] == [["104857600", "100000", "100000"]] * 2
    assert not places["left"]


def test_systemd_can_start_the_server_while_a_limited_run_goes_on(seen: dict[str, Any]) -> None:
    assert seen["started again"]["events"][:2] == ["populated", "1"]


def test_systemd_starts_our_unit_again_while_runs_go_on(seen: dict[str, Any]) -> None:
    first, second = seen["unit"]["first"], seen["unit"]["second"]
    home = "/sys/fs/cgroup/system.slice/trainmaster-server.service"
    assert first["run"] == second["run"] == f"{home}/trainmaster-run-0"
    assert first["made"] and second["made"]
    if seen["unit"]["systemd"] < 254:
        assert first["enforced"] == second["enforced"] == []
        assert "systemd could not restart trainmaster-server.service" in first["why_not"]
    else:
        assert first["enforced"] == second["enforced"] == ["cpu", "memory"]
    assert second["pid"] != first["pid"] and seen["unit"]["goes_on"]


def test_nothing_is_left_after_the_agent_was_killed(seen: dict[str, Any]) -> None:
    assert seen["agent killed"]["status"] == "Failed"
    assert not seen["agent killed"]["left"]


def test_nothing_is_left_after_the_dispatcher_was_killed(seen: dict[str, Any]) -> None:
    assert seen["dispatcher killed"]["status"] == "Completed"
    assert not seen["dispatcher killed"]["left"]


def test_a_place_with_other_programs_says_why(seen: dict[str, Any]) -> None:
    assert seen["foreign"]["enforced"] == []
    assert seen["foreign"]["why_not"] == "other programs are in the cgroup /sys/fs/cgroup/places/foreign"


def test_the_first_process_of_a_container_has_limits(seen: dict[str, Any]) -> None:
    assert seen["container"]["enforced"] == ["cpu", "memory"]
    assert seen["container"]["own"] == "0::/trainmaster-programs"
