"""The plan of one node: read, checked, and refused with a reason when it is not one."""

import os

from trainmaster.job.agent import jsonfile, tokens

VERSION = 1


class PlanError(Exception):
    """The plan cannot be carried out as it is written; the text says what is wrong with it."""


class Process(object):
    """One process to start: what, with which variables, where, and into which log."""

    def __init__(self, data, place):
        self.rank = _number(data, "rank", place, whole=True)
        self.argv = _texts(data, "argv", place)
        self.env = _variables(data, place)
        self.cwd = _text(data, "cwd", place)
        self.log = _text(data, "log", place)
        self.service = bool(data.get("service"))
        # It also gets those of the agent's own variables whose names begin so.
        self.inherits = tuple(_texts(data, "inherits", place)) if "inherits" in data else ()
        # Of one in a container: the command that takes the container away.
        self.remove = tuple(_texts(data, "remove", place)) if "remove" in data else ()
        if not self.argv or not self.argv[0]:
            raise PlanError("{}.argv names no program".format(place))


class Plan(object):
    """What the agent of one node has to do. Every path and text in it has been checked."""

    def __init__(self, data):
        if not isinstance(data, dict):
            raise PlanError("it is not a JSON object")
        if data.get("version") != VERSION:
            raise PlanError("version is {!r}, this agent knows {}".format(data.get("version"), VERSION))
        self.run_id = _text(data, "run_id")
        if not self.run_id or "/" in self.run_id:
            raise PlanError("run_id {!r} cannot be the name of a folder".format(self.run_id))
        self.node = _number(data, "node", whole=True)
        self.folder = _text(data, "folder")
        self.layout = _layout(data.get("layout"))
        self.links = [_link(link, "links[{}]".format(i)) for i, link in enumerate(_list(data, "links", ""))]
        items = enumerate(_list(data, "processes", ""))
        self.processes = [
            Process(_object(item, "processes[{}]".format(i)), "processes[{}]".format(i)) for i, item in items
        ]
        self.alone = bool(data.get("alone", True))
        self.grace_seconds = _number(data, "grace_seconds")
        limit = data.get("time_limit_seconds")
        self.time_limit_seconds = None if limit is None else _number(data, "time_limit_seconds")
        silence = data.get("hang_seconds")
        self.hang_seconds = None if silence is None else _number(data, "hang_seconds")
        # How many agents have to look after each other; none where the dispatcher is sure to.
        self.watched_nodes = _number(data, "watched_nodes", whole=True) if "watched_nodes" in data else 0
        # Under a launcher: how many ranks it starts.
        self.rank_count = len(data["ranks"]) if isinstance(data.get("ranks"), list) else 0
        self.socket, self.dispatcher = _notify(data.get("notify"))
        # So long it runs until the dispatcher is told that it does: of shorter ones it hears the end only.
        # Of the dispatcher: by it the end of such a run sees that somebody is there to see it.
        self.lock = _text(data["notify"], "lock", "notify") if self.socket and "lock" in data["notify"] else None
        self.tell_after_seconds = _number(data, "tell_after_seconds") if "tell_after_seconds" in data else 0
        if not os.path.isabs(self.folder):
            raise PlanError("folder {!r} is not an absolute path".format(self.folder))
        if len({process.rank for process in self.processes}) < len(self.processes):
            raise PlanError("two processes have the same rank")


def read(path):
    """The plan in the file `path`. Raises PlanError."""
    try:
        return Plan(tokens.fill_plan(jsonfile.read(path)))
    except OSError as error:
        raise PlanError("it cannot be read: {}".format(error.strerror)) from None
    except ValueError as error:
        raise PlanError("it is not JSON: {}".format(error)) from None
    except RecursionError:
        raise PlanError("it is nested too deeply") from None


def _layout(data):
    """(manifest, blobs) or None."""
    if data is None:
        return None
    data = _object(data, "layout")
    return _text(data, "manifest", "layout"), _text(data, "blobs", "layout")


def _link(data, place):
    data = _object(data, place)
    return _text(data, "path", place), _text(data, "target", place)


def _notify(data):
    """(socket, command of the dispatcher); a node that cannot reach the dispatcher has neither."""
    if data is None:
        return None, None
    data = _object(data, "notify")
    return _text(data, "socket", "notify"), _texts(data, "dispatcher", "notify")


def _object(data, place):
    if not isinstance(data, dict):
        raise PlanError("{} is not an object".format(place))
    return data


def _list(data, key, place):
    value = data.get(key)
    if not isinstance(value, list):
        raise PlanError("{} is not a list".format(_named(place, key)))
    return value


def _text(data, key, place=""):
    return _checked_text(data.get(key), _named(place, key))


def _texts(data, key, place):
    return [_checked_text(item, _named(place, key)) for item in _list(data, key, place)]


def _variables(data, place):
    env = _object(data.get("env"), _named(place, "env"))
    for name, value in env.items():
        if not name or "=" in name or "\0" in name:
            raise PlanError("{}.env has a variable that cannot be named so: {!r}".format(place, name))
        _checked_text(value, "{}.env[{!r}]".format(place, name))
    return env


def _checked_text(value, place):
    if not isinstance(value, str):
        raise PlanError("{} is not a text".format(place))
    if "\0" in value:
        raise PlanError("{} holds a zero byte".format(place))
    return value


def _number(data, key, place="", whole=False):
    value = data.get(key)
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise PlanError("{} is not a{} number".format(_named(place, key), " whole" if whole else ""))
    # Written so that NaN is refused as well.
    if not 0 <= value <= 1e12:
        raise PlanError("{} is out of range: {!r}".format(_named(place, key), value))
    return value


def _named(place, key):
    return place + "." + key if place else key
