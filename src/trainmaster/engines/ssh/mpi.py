"""MPI over several hosts: mpirun on the first has its daemons started by our agents on the others. Pure.

Hosts need not be able to log in to each other. What mpirun would hand to ssh is noted (`job/agent/remote_launch.py`),
comes here with everything else the host writes, and is sent on to the host it is for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

REQUEST = "launch.json"
"""In the folder of a node: what is to be started there."""
REQUESTS = "launch"
"""In the folder of the first node: what mpirun asks for, a file for each host."""


def launcher(plan: Mapping[str, Any], node_folder: str, kit: str, python: str) -> dict[str, Any]:
    """The plan of the first node; its mpirun knows how to reach the others. Release 4 and 5 have names of their own."""
    # Daemons that are started as a tree stay in the foreground, where our agents keep them.
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


def helper(plan: Mapping[str, Any], number: int, node_folder: str, kit: str, python: str) -> dict[str, Any]:
    """The plan of another node, made from that of the first: its agent waits for what mpirun wants started there."""
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
    return {**plan, **limits, "node": number, "processes": [process], "alone": True}


def asked(name: str, request: Mapping[str, Any], addresses: Sequence[str]) -> int | None:
    """For which node a file of the first one is; None for one that is no request."""
    parts = name.split("/")
    if len(parts) < 2 or parts[-2] != REQUESTS or request.get("host") not in addresses:
        return None
    return list(addresses).index(str(request["host"]))
