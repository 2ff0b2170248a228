"""Answers requests in the order of their arrival.

Blobs and files are not answered: `flush` reports whether all of them arrived. `watch` lasts until the agent has ended,
and handles short requests in the meantime; `desk` (the command channel) lasts until the connection ends.
"""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys

from . import job_requests, messages
from .agents import Kit, claim, end, node_folders, start
from .command_channel import CommandChannel
from .connection import GREETING, Connection, Disconnected
from .files import (
    PLACED,
    copy_blob,
    flush,
    link_blob,
    link_cache,
    mark,
    publish_folder,
    read_json,
    remove_abandoned,
    write_all,
    write_json,
    write_new,
)
from .machine import facts, pythons, replace_variables
from .safe_names import inner_parts, is_plain
from .watching import NodeWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, Optional

    from .connection import Header

    Answer = Optional[Header]

_UNANSWERED = ("blob", "file", "ping", "stop", "kill", "put", "answer")


class Helper(object):
    """Answers requests, in the folder that belongs to one workspace."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._root = ""
        self._problem = ""
        # Hosts that share a folder may have the same process ids.
        self._own_name = "{}-{}".format(os.getpid(), os.urandom(4).hex())

    def serve(self) -> None:
        """Serves until the connection ends. Raises Disconnected."""
        while True:
            header = self._connection.header()
            handle = getattr(self, "on_" + header["op"])
            try:
                answer = handle(header)
            except OSError as error:
                answer = self._error_answer(header["op"], error)
            # The next frame begins behind this one, whatever went wrong.
            for _ in self._connection.pieces():
                pass
            if answer is not None:
                self._connection.send(answer)

    def _error_answer(self, op: str, error: OSError) -> "Answer":
        """The answer to a request that failed; `flush` reports the failure of a request that has no answer."""
        self._note(error)
        if op in _UNANSWERED:
            return None
        problem, self._problem = self._problem, ""
        return messages.failure(problem, {})

    def _path(self, name: str) -> str:
        """A path in the workspace's folder here. No name from outside may lead out of it."""
        return os.path.join(self._root, *_inner(name))

    def _run_folder(self, run_id: str) -> str:
        if not is_plain(run_id):
            raise OSError(errno.EPERM, "not the id of a run", str(run_id)[:300])
        return os.path.join(self._root, "runs", run_id)

    # What exists here

    def on_hello(self, header: "Header") -> "Answer":
        self._root = os.path.abspath(os.path.expanduser(header["root"]))
        if header["make"]:
            os.makedirs(os.path.join(self._root, "runs"), mode=0o700, exist_ok=True)
            link_cache(self._root, header.get("cache", ""))
            partial = os.path.join(self._root, "blobs", ".partial")
            os.makedirs(partial, exist_ok=True)
            remove_abandoned(partial)
            for folder in replace_variables(self._root).values():
                os.makedirs(folder, mode=0o700, exist_ok=True)
        return facts(self._root)

    def on_missing(self, header: "Header") -> "Answer":
        """Which of these paths do not exist."""
        return {"missing": [name for name in header["paths"] if not os.path.lexists(self._path(name))]}

    def on_lacking(self, header: "Header") -> "Answer":
        """Which of these blobs are missing. An empty blob may have lost its content in a power cut."""
        names = self._connection.payload().decode("ascii").split()
        lacking = [name for name in names if not self._has_content(self._blob(name))]
        self._connection.send({"lacking": len(lacking)}, " ".join(lacking).encode("ascii"))
        return None

    def _has_content(self, blob: str) -> bool:
        try:
            return os.path.getsize(blob) > 0
        except OSError:
            return False

    def _blob(self, name: str) -> str:
        if not is_plain(name):
            raise OSError(errno.EPERM, "not the name of a blob", str(name)[:300])
        return os.path.join(self._root, "blobs", name[:2], name)

    def on_pythons(self, header: "Header") -> "Answer":
        """The paths of the Pythons of one version (major.minor)."""
        return {"found": pythons(header["version"])}

    # What is sent here

    def on_blob(self, header: "Header") -> "Answer":
        """Receives a blob, named by its digest. Receiving one that exists does no harm."""
        name = header["name"]
        self._receive(self._blob(name), 0o555 if name.endswith("x") else 0o444)
        return None

    def on_file(self, header: "Header") -> "Answer":
        """Receives a file, which appears complete."""
        self._receive(self._path(header["path"]), header.get("mode", 0o644))
        return None

    def _receive(self, path: str, mode: int) -> None:
        partial = os.path.join(self._root, "blobs", ".partial", "{}-{}".format(self._own_name, os.path.basename(path)))
        handle = None
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode | 0o200)
        except OSError as error:
            self._note(error)
        # All bytes have to be read from the connection, whatever happens.
        for piece in self._connection.pieces():
            if handle is not None and not self._problem:
                try:
                    write_all(handle, piece)
                except OSError as error:
                    self._note(error, path)
        if handle is None:
            return
        os.fchmod(handle, mode)
        os.close(handle)
        if self._problem:
            os.unlink(partial)
        else:
            os.rename(partial, path)

    def _note(self, error: OSError, path: str = "") -> None:
        name = path or error.filename or ""
        self._problem = self._problem or "{}: {}".format(name, error.strerror or error)

    def on_flush(self, header: "Header") -> "Answer":
        """Whether everything that was sent since the last `flush` has arrived."""
        problem, self._problem = self._problem, ""
        return messages.failure(problem, {}) if problem else {"ok": True}

    def on_tree(self, header: "Header") -> "Answer":
        """Creates a folder of blobs, links and texts; it appears complete."""
        path = self._path(header["path"])
        tree = json.loads(self._connection.payload().decode("utf-8"))
        if os.path.lexists(path):
            return {"ok": True}
        making = "{}.making-{}".format(path, self._own_name)
        try:
            os.makedirs(making)
            self._fill(making, tree, copy_blob if header["copy"] else link_blob)
            if header["copy"]:
                # Files younger than this mark were changed here.
                mark(path + PLACED)
            else:
                # Many runs will use it, also after a power cut.
                flush(making)
            publish_folder(making, path)
        finally:
            shutil.rmtree(making, ignore_errors=True)
        return {"ok": True}

    def _fill(self, folder: str, tree: "Mapping[str, Any]", put: "Callable[[str, str], None]") -> None:
        for name in tree["folders"]:
            os.makedirs(os.path.join(folder, *_inner(name)), exist_ok=True)
        for name, blob in tree["files"]:
            put(self._blob(blob), os.path.join(folder, *_inner(name)))
        for name, text, mode in tree["texts"]:
            write_new(os.path.join(folder, *_inner(name)), text.encode("utf-8", "surrogateescape"), mode)
        for name, target in tree["links"]:
            os.symlink(target, os.path.join(folder, *_inner(name)))

    def on_try(self, header: "Header") -> "Answer":
        """Whether a program runs here, and its output."""
        words = [word.replace("{root}", self._root) for word in header["argv"]]
        environment = dict(os.environ, **header.get("env", {}))
        try:
            program = subprocess.Popen(
                words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            output = program.communicate()[0].decode("utf-8", "replace")
        except OSError as error:
            return {"code": 127, "said": str(error)}
        return {"code": program.returncode, "said": output[-2000:]}

    # Agents

    def on_start(self, header: "Header") -> "Answer":
        """Writes the plan of a node and starts its agent. If this happens twice, the claim decides."""
        folder = self._path(header["folder"])
        os.makedirs(folder, exist_ok=True)
        run = self._run_folder(header["run"])
        order = json.loads(self._connection.payload().decode("utf-8"))
        plan = order["plan"]
        if os.path.isdir(os.path.join(run, "code")) and not header["shared"]:
            plan["layout"] = None
        self._prepare_run(run, folder, header["attempt"] if header["first"] else 1, order["files"])
        write_json(os.path.join(folder, "plan.json"), plan)
        return {"pid": start(folder, Kit(self._path(header["kit"])))["pid"]}

    def on_lay(self, header: "Header") -> "Answer":
        """Writes everything that agents on other machines need to begin; starts nothing."""
        files = json.loads(self._connection.payload().decode("utf-8"))
        self._prepare_run(self._run_folder(header["run"]), self._path(header["folder"]), header["attempt"], files)
        return {"ok": True}

    def _prepare_run(self, run: str, folder: str, attempt: int, files: "Mapping[str, Any]") -> None:
        """Creates the folders of a run, and files in them."""
        if attempt > 1 and not os.path.exists(os.path.join(folder, "plan.json")):
            # The output of the previous attempt has been fetched; this attempt begins with empty logs.
            shutil.rmtree(os.path.join(run, "files", "azureml-logs"), ignore_errors=True)
            job_requests.clear(run)
        for name in ("files/azureml-logs", "journals"):
            os.makedirs(os.path.join(run, name), exist_ok=True)
        job_requests.make_folder(run)
        for name, data in files.items():
            write_json(self._path(name), data)

    def on_writable(self, header: "Header") -> "Answer":
        """Whether files can be created in a folder, or in its nearest existing parent."""
        folder = os.path.abspath(os.path.expanduser(header["path"]))
        while not os.path.lexists(folder):
            folder = os.path.dirname(folder)
        if not os.path.isdir(folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
        # Not the process id: hosts that share the folder may have the same one.
        trial = os.path.join(folder, ".trainmaster-{}".format(os.urandom(8).hex()))
        write_new(trial, b"", 0o600)
        os.unlink(trial)
        return {"ok": True}

    def on_sweep(self, header: "Header") -> "Answer":
        """Ends all processes of a run here and, if the run is over for good, removes its folder."""
        run = self._run_folder(header["run"])
        if header["kit"] and os.path.isdir(run):
            kit = Kit(self._path(header["kit"]))
            for folder in node_folders(run):
                claim(folder, kit)
                end(folder, kit, signal.SIGKILL)
                kit.tree.sweep(header["run"], (read_json(folder + "/agent.json") or {}).get("cgroup"), ())
        if header["remove"]:
            shutil.rmtree(run, ignore_errors=True)
        return {"ok": True}

    def on_watch(self, header: "Header") -> "Answer":
        kit = Kit(self._path(header["kit"]))
        run, folder = self._run_folder(header["run"]), self._path(header["folder"])
        NodeWatch(self._connection, kit, run, folder, header).run()
        return None

    def on_desk(self, header: "Header") -> "Answer":
        CommandChannel(self._connection, self._path, header).serve()
        return None

    def on_ping(self, header: "Header") -> "Answer":
        return None

    def on_stop(self, header: "Header") -> "Answer":
        # For a watch that has just ended.
        return None

    on_kill = on_put = on_answer = on_stop


def _inner(name: object) -> "list[str]":
    """The parts of a path that stays in its folder. Raises OSError."""
    try:
        return inner_parts(name)
    except ValueError:
        raise OSError(errno.EPERM, "not in the folder of the workspace", str(name)[:300]) from None


def main() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    # The output of login scripts comes before the greeting, and the other side ignores it.
    sys.stdout.flush()
    connection = Connection(0, 1)
    connection.write(GREETING)
    try:
        Helper(connection).serve()
    except (Disconnected, KeyboardInterrupt):
        pass
