"""Answers requests, in the order in which they come. Blobs and files are not answered: `flush` tells whether all went
well. `watch` goes on until the agent has ended, and takes short requests meanwhile; `desk` until the connection ends.
"""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys

from . import job_requests as requests
from .agents import Kit, claim, end, node_folders, start
from .command_channel import CommandChannel
from .connection import GREETING, Connection, Disconnected
from .files import (
    PLACED,
    appear,
    copied,
    flush,
    linked,
    mark,
    read_json,
    remove_abandoned,
    write_all,
    write_json,
    write_new,
)
from .machine import facts, pythons
from .names import inner_parts, is_plain
from .watching import Watch

_UNANSWERED = ("blob", "file", "ping", "stop", "kill", "put", "answer")


class Helper(object):
    """Answers requests, in the folder that belongs to one workspace."""

    def __init__(self, line):
        self._line = line
        self._root = ""
        self._problem = ""

    def serve(self):
        while True:
            header = self._line.header()
            work = getattr(self, "on_" + header["op"])
            try:
                answer = work(header)
            except OSError as error:
                answer = self._complaint(header["op"], error)
            # Whatever went wrong, the next frame begins behind this one.
            for _ in self._line.pieces():
                pass
            if answer is not None:
                self._line.send(answer)

    def _complaint(self, op, error):
        """The answer to a request that failed; what is not answered is told by `flush`."""
        self._note(error)
        if op in _UNANSWERED:
            return None
        problem, self._problem = self._problem, ""
        return {"error": problem}

    def _path(self, name):
        """A path in the workspace's folder here, which nothing that was sent may leave."""
        return os.path.join(self._root, *_inner(name))

    def _run_folder(self, run_id):
        if not is_plain(run_id):
            raise OSError(errno.EPERM, "not the id of a run", str(run_id)[:300])
        return os.path.join(self._root, "runs", run_id)

    # What there is

    def on_hello(self, header):
        self._root = os.path.abspath(os.path.expanduser(header["root"]))
        if header["make"]:
            os.makedirs(os.path.join(self._root, "runs"), mode=0o700, exist_ok=True)
            partial = os.path.join(self._root, "blobs", ".partial")
            os.makedirs(partial, exist_ok=True)
            remove_abandoned(partial)
        return facts(self._root)

    def on_missing(self, header):
        """Which of these paths are not there."""
        return {"missing": [name for name in header["paths"] if not os.path.lexists(self._path(name))]}

    def on_lacking(self, header):
        """Which of these contents are not there. One that is empty may have lost what it held in a power cut."""
        names = self._line.payload().decode("ascii").split()
        lacking = [name for name in names if not self._holds_something(self._blob(name))]
        self._line.send({"lacking": len(lacking)}, " ".join(lacking).encode("ascii"))

    def _holds_something(self, blob):
        try:
            return os.path.getsize(blob) > 0
        except OSError:
            return False

    def _blob(self, name):
        if not is_plain(name):
            raise OSError(errno.EPERM, "not the name of a content", str(name)[:300])
        return os.path.join(self._root, "blobs", name[:2], name)

    def on_pythons(self, header):
        """The Pythons here of one version (major.minor), as paths."""
        return {"found": pythons(header["version"])}

    # What is brought

    def on_blob(self, header):
        """A content, by the name of its digest; one that is not read but in vain is no matter."""
        name = header["name"]
        mode = 0o555 if name.endswith("x") else 0o444
        self._take_in(header, self._blob(name), mode)

    def on_file(self, header):
        """A file, which appears whole."""
        self._take_in(header, self._path(header["path"]), header.get("mode", 0o644))

    def _take_in(self, header, place, mode):
        partial = os.path.join(self._root, "blobs", ".partial", "{}-{}".format(os.getpid(), os.path.basename(place)))
        handle = None
        try:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode | 0o200)
        except OSError as error:
            self._note(error)
        # Whatever happens, all of its bytes have to be taken from the line.
        for piece in self._line.pieces():
            if handle is not None and not self._problem:
                try:
                    write_all(handle, piece)
                except OSError as error:
                    self._note(error, place)
        if handle is None:
            return
        os.fchmod(handle, mode)
        os.close(handle)
        if self._problem:
            os.unlink(partial)
        else:
            os.rename(partial, place)

    def _note(self, error, place=""):
        name = place or error.filename or ""
        self._problem = self._problem or "{}: {}".format(name, error.strerror or error)

    def on_flush(self, header):
        """Whether all that was sent since the last time is there."""
        problem, self._problem = self._problem, ""
        return {"error": problem} if problem else {"ok": True}

    def on_tree(self, header):
        """A folder made of contents that are there, of links and of texts; it appears whole."""
        place = self._path(header["path"])
        tree = json.loads(self._line.payload().decode("utf-8"))
        if os.path.lexists(place):
            return {"ok": True}
        making = "{}.making-{}".format(place, os.getpid())
        shutil.rmtree(making, ignore_errors=True)
        try:
            os.makedirs(making)
            self._fill(making, tree, copied if header["copy"] else linked)
            if header["copy"]:
                # What is younger than this was changed here.
                mark(place + PLACED)
            else:
                # Many runs will use it, also after a power cut.
                flush(making)
            appear(making, place)
        finally:
            shutil.rmtree(making, ignore_errors=True)
        return {"ok": True}

    def _fill(self, place, tree, put):
        for name in tree["folders"]:
            os.makedirs(os.path.join(place, *_inner(name)), exist_ok=True)
        for name, blob in tree["files"]:
            put(self._blob(blob), os.path.join(place, *_inner(name)))
        for name, text, mode in tree["texts"]:
            write_new(os.path.join(place, *_inner(name)), text.encode("utf-8", "surrogateescape"), mode)
        for name, target in tree["links"]:
            os.symlink(target, os.path.join(place, *_inner(name)))

    def on_try(self, header):
        """Whether a program runs here, and what it says."""
        words = [word.replace("{root}", self._root) for word in header["argv"]]
        environment = dict(os.environ, **header.get("env", {}))
        try:
            done = subprocess.Popen(
                words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            said = done.communicate()[0].decode("utf-8", "replace")
        except OSError as error:
            return {"code": 127, "said": str(error)}
        return {"code": done.returncode, "said": said[-2000:]}

    # Agents

    def on_start(self, header):
        """Writes the plan of a node and starts its agent. The claim decides if this is done twice."""
        folder = self._path(header["folder"])
        os.makedirs(folder, exist_ok=True)
        run = self._run_folder(header["run"])
        plan = json.loads(self._line.payload().decode("utf-8"))
        data = plan["plan"]
        if os.path.isdir(os.path.join(run, "code")) and not header["shared"]:
            data["layout"] = None
        self._lay_down(run, folder, header["attempt"] if header["first"] else 1, plan["files"])
        write_json(os.path.join(folder, "plan.json"), data)
        return {"pid": start(folder, Kit(self._path(header["kit"])))["pid"]}

    def on_lay(self, header):
        """Writes all that agents on other machines need to begin; nobody is started."""
        files = json.loads(self._line.payload().decode("utf-8"))
        self._lay_down(self._run_folder(header["run"]), self._path(header["folder"]), header["attempt"], files)
        return {"ok": True}

    def _lay_down(self, run, folder, attempt, files):
        """The folders of a run, and files in them."""
        if attempt > 1 and not os.path.exists(os.path.join(folder, "plan.json")):
            # What the attempt before printed has been fetched; this one begins with empty logs.
            shutil.rmtree(os.path.join(run, "files", "azureml-logs"), ignore_errors=True)
            requests.clear(run)
        for name in ("files/azureml-logs", "journals"):
            os.makedirs(os.path.join(run, name), exist_ok=True)
        requests.make_folder(run)
        for name, data in files.items():
            write_json(self._path(name), data)

    def on_writable(self, header):
        """Whether files can be made in a folder, or in the nearest above it that is there."""
        place = os.path.abspath(os.path.expanduser(header["path"]))
        while not os.path.lexists(place):
            place = os.path.dirname(place)
        if not os.path.isdir(place):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), place)
        trial = os.path.join(place, ".trainmaster-{}".format(os.getpid()))
        write_new(trial, b"", 0o600)
        os.unlink(trial)
        return {"ok": True}

    def on_sweep(self, header):
        """Ends all that is left of a run here and, if it is over for good, forgets it."""
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

    def on_watch(self, header):
        kit = Kit(self._path(header["kit"]))
        run, folder = self._run_folder(header["run"]), self._path(header["folder"])
        Watch(self._line, kit, run, folder, header).until_ended()

    def on_desk(self, header):
        CommandChannel(self._line, self._path, header).serve()

    def on_ping(self, header):
        return None

    def on_stop(self, header):
        # Of a watch that has just ended.
        return None

    on_kill = on_put = on_answer = on_stop


def _inner(name):
    """The parts of a path that stays in its folder."""
    try:
        return inner_parts(name)
    except ValueError:
        raise OSError(errno.EPERM, "not in the folder of the workspace", str(name)[:300]) from None


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    # What scripts of the login printed comes before this, and is passed over.
    sys.stdout.flush()
    line = Connection(0, 1)
    line.write(GREETING)
    try:
        Helper(line).serve()
    except (Disconnected, KeyboardInterrupt):
        pass
