"""The first process of a pod that sees the run's folder: it meets the other pods of the run, then becomes the agent.

`python3 -I -S shared_folder.py <folder of the nodes> <number> <count>`

Every pod writes its address to a file. When all have done so, all pods run, and `gang.json` says their addresses.
"""

import os
import signal
import sys
import time

# Because of -I our package is not on the path.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

ADDRESSES = "addresses"
"""Beside the folders of the nodes: a file for each pod. The engine removes it before it creates pods again."""
ORDER = "pod.json"
"""In the folder of a node: what its plan lacks, which only the pod knows."""
OWN = "/trainmaster"
"""A folder that only this pod has. The image may have neither a home nor a folder for temporary files."""
_PAUSE_SECONDS = 0.1
_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")


def main(arguments: "Sequence[str]") -> int:
    """Returns the exit code."""
    folder, number, count = os.path.abspath(arguments[0]), int(arguments[1]), int(arguments[2])
    # A first process has no default handlers: without one it would ignore the signal.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if not meet(folder, number, count):
        return 0
    complete_plan(os.path.join(folder, str(number)), ["plan.json"] + (["ranks.json"] if number == 0 else []), OWN)
    return _become_agent(os.path.join(folder, str(number)))


def meet(folder: str, number: int, count: int) -> bool:
    """Returns when the addresses of all pods are known; False if the run was given up before."""
    from trainmaster.job.agent import jsonfile
    from trainmaster.job.agent.other_nodes import STOP
    from trainmaster.job.agent.slurm import GANG

    addresses = os.path.join(folder, ADDRESSES)
    os.makedirs(addresses, exist_ok=True)
    jsonfile.write(os.path.join(addresses, "{}.json".format(number)), {"version": 1, "address": find_address()})
    while True:
        if os.path.exists(os.path.join(folder, STOP)):
            return False
        # A network file system may remember that a file does not exist, unless its folder is listed.
        os.listdir(addresses)
        found = [jsonfile.read_if_valid(os.path.join(addresses, "{}.json".format(each))) for each in range(count)]
        if all(found):
            break
        time.sleep(_PAUSE_SECONDS)
    # All pods write the same, each to a file of its own first.
    hosts = [each["address"] for each in found if each]
    own = os.path.join(addresses, "{}-{}".format(number, GANG))
    jsonfile.write(own, {"version": 1, "hosts": hosts})
    os.replace(own, os.path.join(folder, GANG))
    return True


def find_address() -> str:
    """The address under which other pods reach this one: the kubelet writes it to /etc/hosts."""
    import socket

    return socket.gethostbyname(socket.gethostname())


def complete_plan(folder: str, names: "Sequence[str]", own: str) -> None:
    """Puts this pod's Python and variables into the plan of its node; `own` is for folders that the image lacks."""
    from trainmaster.job.agent import jsonfile
    from trainmaster.job.agent.tokens import replace_tokens
    from trainmaster.job.helper.machine import replace_variables
    from trainmaster.job.pod.variables import translate_plan

    order: "dict[str, Any]" = jsonfile.read(os.path.join(folder, ORDER))
    replaced = replace_variables(own)
    for each in replaced.values():
        os.makedirs(each, mode=0o700, exist_ok=True)
    variables = dict({name: os.environ[name] for name in _VARIABLES if name in os.environ}, **replaced)
    for name in names:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            plan = replace_tokens(jsonfile.read(path), {order["python_token"]: sys.executable})
            translate_plan(plan, order["inherited"], variables, dict(order["more"], **replaced))
            jsonfile.write(path, plan)


def _become_agent(folder: str) -> int:
    from trainmaster.job.agent.agent import main as execute

    log = os.open(os.path.join(folder, "agent.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    return execute([os.path.join(folder, "plan.json")])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
