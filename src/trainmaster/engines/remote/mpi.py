"""MPI over several hosts: mpirun runs on the first host, and our agents on the others start its daemons. Pure.

The hosts need not be able to log in to each other. `job/agent/remote_launch.py` writes down what mpirun would pass to
ssh. The file comes here like every other file of the host, and is sent on to the host that it is for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

REQUEST = "launch.json"
"""In the folder of a node: what its agent has to start."""
REQUESTS = "launch"
"""In the folder of the first node: what mpirun requests, one file per host."""


def launcher_plan(plan: Mapping[str, Any], node_folder: str, kit: str, python: str) -> dict[str, Any]:
    """The plan of the first node, whose mpirun can reach the others. Open MPI 4 and 5 use different variables."""
    # Daemons that are started as a tree stay in the foreground, under the control of our agents.
    reach = f"{python} -I -S {kit}/trainmaster/job/agent/remote_launch.py ask {node_folder}/{REQUESTS}"
    variables = {
        "PRTE_MCA_plm": "ssh",
        "PRTE_MCA_plm_ssh_agent": reach,
        "PRTE_MCA_prte_leave_session_attached": "1",
        "OMPI_MCA_plm": "rsh",
        "OMPI_MCA_plm_rsh_agent": reach,
        "OMPI_MCA_orte_leave_session_attached": "1",
    }
    processes = [{**each, "env": {**each["env"], **variables}} for each in plan["processes"]]
    return {**plan, "processes": processes}


def helper_plan(plan: Mapping[str, Any], number: int, node_folder: str, kit: str, python: str) -> dict[str, Any]:
    """The plan of another node, made from that of the first: its agent waits for the request of mpirun."""
    first = plan["processes"][0]
    program = f"{kit}/trainmaster/job/agent/remote_launch.py"
    process = {
        "rank": 0,
        "argv": [python, "-I", "-S", program, "wait", f"{node_folder}/{REQUEST}"],
        "env": first["env"],
        "cwd": first["cwd"],
        "log": f"{node_folder}/prted.log",
        "service": True,
    }
    limits = {"time_limit_seconds": None, "hang_seconds": None}
    # The first node lays out a folder that all of them see.
    return {**plan, **limits, "layout": None, "links": [], "node": number, "processes": [process], "alone": True}


def find_node(name: str, request: Mapping[str, Any], addresses: Sequence[str]) -> int | None:
    """The node for which a file of the first node is a request; None for other files."""
    parts = name.split("/")
    if len(parts) < 2 or parts[-2] != REQUESTS or request.get("host") not in addresses:
        return None
    return list(addresses).index(str(request["host"]))
