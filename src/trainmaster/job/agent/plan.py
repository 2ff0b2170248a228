"""The plan of one node: reads and checks it, and says why an invalid one is refused."""

import os

from trainmaster.job.agent import jsonfile, tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trainmaster.job.agent.hostfile import Hostfile
    from trainmaster.job.agent.limits import Limits

VERSION = 1


class PlanError(Exception):
    """The plan is invalid; the text says why."""


class Process(object):
    """One process to start: its command, variables, working folder and log."""

    def __init__(self, data: "dict[str, Any]", where: str) -> None:
        self.rank = _integer(data, "rank", where)
        self.argv = _texts(data, "argv", where)
        self.env = _variables(data, where)
        self.cwd = _text(data, "cwd", where)
        self.log = _text(data, "log", where)
        self.service = bool(data.get("service"))
        # The process also gets those variables of the agent whose names begin with one of these.
        self.inherits = tuple(_texts(data, "inherits", where)) if "inherits" in data else ()
        # The command that removes the container of the process, if it runs in one.
        self.remove = tuple(_texts(data, "remove", where)) if "remove" in data else ()
        if not self.argv or not self.argv[0]:
            raise PlanError("{}.argv names no program".format(where))


class Plan(object):
    """What the agent of one node has to do. Every path and text in it has been checked."""

    def __init__(self, data: "Any") -> None:
        if not isinstance(data, dict):
            raise PlanError("it is not a JSON object")
        if data.get("version") != VERSION:
            raise PlanError("version is {!r}, but this agent supports {}".format(data.get("version"), VERSION))
        self.run_id = _text(data, "run_id")
        if not self.run_id or "/" in self.run_id:
            raise PlanError("run_id {!r} cannot be the name of a folder".format(self.run_id))
        self.node = _integer(data, "node")
        self.folder = _text(data, "folder")
        # The path of the manifest and the folder of the blobs, if this node lays out the snapshot.
        self.layout = _layout(data.get("layout"))
        self.links = [_link(link, "links[{}]".format(i)) for i, link in enumerate(_list(data, "links"))]
        items = enumerate(_list(data, "processes"))
        self.processes = [
            Process(_object(item, "processes[{}]".format(i)), "processes[{}]".format(i)) for i, item in items
        ]
        self.alone = bool(data.get("alone", True))
        self.grace_seconds = _number(data, "grace_seconds")
        limit = data.get("time_limit_seconds")
        self.time_limit_seconds = None if limit is None else _number(data, "time_limit_seconds")
        silence = data.get("hang_seconds")
        self.hang_seconds = None if silence is None else _number(data, "hang_seconds")
        # How often to measure what the run uses: 0 never, None as it fits.
        wanted = data.get("sample_seconds")
        self.sample_seconds = None if wanted is None else _number(data, "sample_seconds")
        self.limits = _limits(data.get("limits"))
        # For launchers of other projects: the hosts of a run with several processes.
        self.hostfile = _hostfile(data.get("hostfile"))
        # The number of agents that watch each other; 0 where the dispatcher certainly watches them.
        self.watched_nodes = _integer(data, "watched_nodes") if "watched_nodes" in data else 0
        # The number of ranks that a launcher starts.
        self.rank_count = len(data["ranks"]) if isinstance(data.get("ranks"), list) else 0
        # The socket of the dispatcher, and the command that starts one; None where the node cannot reach it.
        self.socket: "str | None" = None
        self.dispatcher: "list[str] | None" = None
        # The dispatcher's lock: shows cheaply, at the end of a run, whether a dispatcher is running.
        self.lock: "str | None" = None
        self._read_notify(data.get("notify"))
        # Report the start to the dispatcher only after this time; for a shorter run it only notices the end.
        self.tell_after_seconds = _number(data, "tell_after_seconds") if "tell_after_seconds" in data else 0
        if not os.path.isabs(self.folder):
            raise PlanError("folder {!r} is not an absolute path".format(self.folder))
        if len({process.rank for process in self.processes}) < len(self.processes):
            raise PlanError("two processes have the same rank")

    def _read_notify(self, data: "Any") -> None:
        if data is None:
            return
        data = _object(data, "notify")
        self.socket = _text(data, "socket", "notify")
        self.dispatcher = _texts(data, "dispatcher", "notify")
        if self.socket and "lock" in data:
            self.lock = _text(data, "lock", "notify")


def read(path: str) -> Plan:
    """The plan in the file `path`. Raises PlanError."""
    try:
        return Plan(tokens.fill_plan(jsonfile.read(path)))
    except OSError as error:
        raise PlanError("it cannot be read: {}".format(error.strerror)) from None
    except ValueError as error:
        raise PlanError("it is not JSON: {}".format(error)) from None
    except RecursionError:
        raise PlanError("it is nested too deeply") from None


def _limits(data: "Any") -> "Limits | None":
    if data is None:
        return None
    from trainmaster.job.agent.limits import Limits

    data = _object(data, "limits")
    cpus, memory = data.get("cpus"), data.get("memory")
    return Limits(
        None if cpus is None else _integer(data, "cpus", "limits"),
        None if memory is None else _integer(data, "memory", "limits"),
        _integer(data, "first_cpu", "limits"),
    )


def _hostfile(data: "Any") -> "Hostfile | None":
    if data is None:
        return None
    from trainmaster.job.agent.hostfile import Hostfile

    data = _object(data, "hostfile")
    hosts = []
    for number, item in enumerate(_list(data, "hosts", "hostfile")):
        where = "hostfile.hosts[{}]".format(number)
        host = _object(item, where)
        hosts.append((_text(host, "name", where), _integer(host, "slots", where)))
    return Hostfile(_text(data, "folder", "hostfile"), hosts, _variables(data, "hostfile"))


def _layout(data: "Any") -> "tuple[str, str] | None":
    if data is None:
        return None
    data = _object(data, "layout")
    return _text(data, "manifest", "layout"), _text(data, "blobs", "layout")


def _link(data: "Any", where: str) -> "tuple[str, str]":
    data = _object(data, where)
    return _text(data, "path", where), _text(data, "target", where)


def _object(data: "Any", where: str) -> "dict[str, Any]":
    if not isinstance(data, dict):
        raise PlanError("{} is not an object".format(where))
    return data


def _list(data: "dict[str, Any]", key: str, where: str = "") -> "list[Any]":
    value = data.get(key)
    if not isinstance(value, list):
        raise PlanError("{} is not a list".format(_join(where, key)))
    return value


def _text(data: "dict[str, Any]", key: str, where: str = "") -> str:
    return _check_text(data.get(key), _join(where, key))


def _texts(data: "dict[str, Any]", key: str, where: str) -> "list[str]":
    return [_check_text(item, _join(where, key)) for item in _list(data, key, where)]


def _variables(data: "dict[str, Any]", where: str) -> "dict[str, str]":
    env = _object(data.get("env"), _join(where, "env"))
    for name, value in env.items():
        if not name or "=" in name or "\0" in name:
            raise PlanError("{}.env has an invalid variable name: {!r}".format(where, name))
        _check_text(value, "{}.env[{!r}]".format(where, name))
    return env


def _check_text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise PlanError("{} is not a text".format(where))
    if "\0" in value:
        raise PlanError("{} contains a zero byte".format(where))
    return value


def _integer(data: "dict[str, Any]", key: str, where: str = "") -> int:
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        raise PlanError("{} is not a whole number".format(_join(where, key)))
    _check_range(value, _join(where, key))
    return value


def _number(data: "dict[str, Any]", key: str, where: str = "") -> float:
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise PlanError("{} is not a number".format(_join(where, key)))
    _check_range(value, _join(where, key))
    return value


def _check_range(value: float, where: str) -> None:
    # This form also refuses NaN.
    if not 0 <= value <= 1e15:
        raise PlanError("{} is out of range: {!r}".format(where, value))


def _join(where: str, key: str) -> str:
    return where + "." + key if where else key
