"""What runs at the other end of an SSH connection: it takes files in, starts agents, and tells what becomes of them.

Sent over the connection itself (`engines/ssh/session.py`), so that nothing has to be there but Python 3.6; one file for
that reason. What it needs beyond itself is in the kit, which is the first thing that travels.

Both sides speak in frames: a line of JSON, which may be followed by as many bytes as its `size` says. Requests are
answered in order; blobs and files are not answered, `flush` tells whether all went well. `watch` goes on until the
agent has ended, and takes the short requests of `_NOW` meanwhile.
"""

import errno
import hashlib
import json
import os
import select
import shutil
import signal
import sys
import time

GREETING = b"trainmaster ferry 1\n"

_PIECE = 256 * 1024
# A file that changes and is larger than this is sent only when it has been left alone for a while.
_LARGE = 64 * 1024 * 1024
_QUIET_SECONDS = 5.0
# Written to so shortly before it was looked at that it may change again within the clock's tick.
_TICK_SECONDS = 0.05
_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 0.5
_CLAIM_SECONDS = 10.0
_ABANDONED_SECONDS = 3600.0
_UNANSWERED = ("blob", "file", "ping", "stop", "kill", "put")
# Beside a folder of data: when it was brought.
_PLACED = ".placed"
_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")


class Gone(Exception):
    """Nobody is at the other end any more."""


class Line(object):
    """The connection: frames in, frames out."""

    def __init__(self, source, sink):
        self._source = source
        self._sink = sink
        self._held = b""
        self._rest = 0

    def send(self, header, payload=b""):
        """One frame."""
        if payload:
            header = dict(header, size=len(payload))
        self._write(json.dumps(header).encode("ascii") + b"\n" + payload)

    def _write(self, data):
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._sink, view) :]
            except OSError:
                raise Gone() from None

    def waits(self, seconds):
        """Whether something has come within so many seconds."""
        return bool(self._held) or bool(select.select([self._source], [], [], seconds)[0])

    def header(self):
        """The next frame's line; its bytes are for `payload` or `pieces`."""
        while b"\n" not in self._held:
            self._held += self._read()
        line, _, self._held = self._held.partition(b"\n")
        header = json.loads(line.decode("ascii"))
        self._rest = header.get("size", 0)
        return header

    def payload(self):
        return b"".join(self.pieces())

    def pieces(self):
        """The bytes that belong to the frame, those that were not taken yet."""
        while self._rest:
            data = self._held or self._read()
            piece, self._held = data[: self._rest], data[self._rest :]
            self._rest -= len(piece)
            yield piece

    def _read(self):
        data = os.read(self._source, _PIECE)
        if not data:
            raise Gone()
        return data


class Ferry(object):
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
        parts = name.split("/")
        if name.startswith("/") or ".." in parts:
            raise OSError(errno.EPERM, "not in the folder of the workspace", name)
        return os.path.join(self._root, *parts)

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
        """Which of these contents are not there."""
        names = self._line.payload().decode("ascii").split()
        lacking = [name for name in names if not os.path.exists(self._blob(name))]
        self._line.send({"lacking": len(lacking)}, " ".join(lacking).encode("ascii"))

    def _blob(self, name):
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
                mark(place + _PLACED)
            os.rename(making, place)
        finally:
            shutil.rmtree(making, ignore_errors=True)
        return {"ok": True}

    def _fill(self, place, tree, put):
        for name in tree["folders"]:
            os.makedirs(os.path.join(place, name), exist_ok=True)
        for name, blob in tree["files"]:
            put(self._blob(blob), os.path.join(place, name))
        for name, text, mode in tree["texts"]:
            handle = os.open(os.path.join(place, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
            write_all(handle, text.encode("utf-8", "surrogateescape"))
            os.close(handle)
        for name, target in tree["links"]:
            os.symlink(target, os.path.join(place, name))

    def on_try(self, header):
        """Whether a program runs here, and what it says."""
        import subprocess

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
        run = self._path("runs/" + header["run"])
        plan = json.loads(self._line.payload().decode("utf-8"))
        for name, data in plan["files"].items():
            write_json(os.path.join(self._root, name), data)
        data = plan["plan"]
        if os.path.isdir(os.path.join(run, "code")) and not header["shared"]:
            data["layout"] = None
        if header["attempt"] > 1 and header["first"] and not os.path.exists(os.path.join(folder, "plan.json")):
            # What the attempt before printed has been fetched; this one begins with empty logs.
            shutil.rmtree(os.path.join(run, "files", "azureml-logs"), ignore_errors=True)
        for name in ("files/azureml-logs", "journals"):
            os.makedirs(os.path.join(run, name), exist_ok=True)
        write_json(os.path.join(folder, "plan.json"), data)
        kit = self._path(header["kit"])
        pid = spawn([sys.executable, "-I", "-S", kit + "/trainmaster/node/__main__.py", folder + "/plan.json"], folder)
        write_json(os.path.join(folder, "spawned.json"), self._named(kit, pid))
        return {"pid": pid}

    def _named(self, kit, pid):
        process = of_kit(kit).process
        return {"pid": pid, "start_time": process.start_time(pid), "boot_id": process.boot_id()}

    def on_sweep(self, header):
        """Ends all that is left of a run here and, if it is over for good, forgets it."""
        run = self._path("runs/" + header["run"])
        if header["kit"] and os.path.isdir(run):
            kit = of_kit(self._path(header["kit"]))
            for folder in node_folders(run):
                claim(folder, kit)
                end(folder, kit, signal.SIGKILL)
                kit.tree.sweep(header["run"], (read_json(folder + "/agent.json") or {}).get("cgroup"), ())
        if header["remove"]:
            shutil.rmtree(run, ignore_errors=True)
        return {"ok": True}

    def on_watch(self, header):
        kit = of_kit(self._path(header["kit"]))
        run, folder = self._path("runs/" + header["run"]), self._path(header["folder"])
        Watch(self._line, kit, run, folder, header).until_ended()

    def on_ping(self, header):
        return None

    def on_stop(self, header):
        # Of a watch that has just ended.
        return None

    on_kill = on_put = on_stop


class Watch(object):
    """Tells all that becomes of one node of a run: what is written, and when its agent has ended."""

    def __init__(self, line, kit, run, folder, order):
        self._line = line
        self._kit = kit
        self._run = run
        self._folder = folder
        self._patience = order["patience"]
        self._heard = time.time()
        self._began = time.time()
        self._sizes = order["sizes"]
        self._common = order["common"]
        self._back = order["back"]
        self._states = {name: tuple(state) for name, state in order["states"].items()}
        self._digests = {}
        self._stamps = {}
        self._work_at = 0.0

    def until_ended(self):
        pause = _PAUSE_SECONDS
        told = 0.0
        while True:
            ended = not self._lives()
            some = self._tell_small()
            some = self._tell_grown() or some
            if ended or time.time() >= self._work_at:
                began = time.time()
                some = self._tell_work(ended) or some
                self._work_at = time.time() + max(1.0, 10 * (time.time() - began))
            if ended:
                self._line.send({"ended": True})
                return
            if time.time() - told > self._patience / 4:
                told = time.time()
                self._line.send({"alive": True})
            pause = _PAUSE_SECONDS if some else min(pause * 1.5, _LONGEST_PAUSE_SECONDS)
            self._listen(pause)

    def _lives(self):
        process = self._kit.process
        found = read_json(self._folder + "/agent.json")
        if found is None:
            found = read_json(self._folder + "/spawned.json")
            if found is None:
                # Nobody began; perhaps somebody is just about to.
                return time.time() - self._began < _CLAIM_SECONDS
        if found.get("cancelled"):
            return False
        return process.is_alive(found["pid"], found["start_time"], found["boot_id"])

    def _listen(self, seconds):
        """Takes what the other side says, for so long at most; ends with it if it has fallen silent."""
        if not self._line.waits(seconds):
            if time.time() - self._heard > self._patience:
                raise Gone()
            return
        while self._line.waits(0):
            self._take(self._line.header())

    def _take(self, header):
        self._heard = time.time()
        op = header["op"]
        if op == "stop":
            claim(self._folder, self._kit)
            if mark(self._folder + "/stopped"):
                end(self._folder, self._kit, signal.SIGTERM)
        elif op == "kill":
            end(self._folder, self._kit, signal.SIGKILL)
        elif op == "put":
            data = self._line.payload()
            place = os.path.join(self._run, header["path"])
            os.makedirs(os.path.dirname(place), exist_ok=True)
            handle = os.open(place + ".part", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            write_all(handle, data)
            os.close(handle)
            os.rename(place + ".part", place)

    # Small files that are written whole: claims, results, notes of ranks

    def _tell_small(self):
        some = False
        for path in self._small():
            try:
                found = os.stat(path)
                stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
                if self._stamps.get(path) == stamp:
                    continue
                with open(path, "rb") as file:
                    data = file.read()
            except OSError:
                continue
            self._stamps[path] = stamp
            self._line.send({"small": os.path.relpath(path, self._run)}, data)
            some = True
        return some

    def _small(self):
        ranks = os.path.join(os.path.dirname(self._folder), "0", "ranks")
        launch = os.path.join(self._folder, "launch")
        for folder in (self._folder, ranks, launch):
            for name in names(folder):
                if name.endswith(".json") and name not in ("plan.json", "ranks.json", "spawned.json"):
                    yield os.path.join(folder, name)

    # Files that only grow: logs and journals

    def _tell_grown(self):
        some = False
        for path in self._growing():
            name = os.path.relpath(path, self._run)
            start = self._sizes.get(name, 0)
            try:
                if os.stat(path).st_size <= start:
                    continue
                some = self._send_rest(path, name, start) or some
            except OSError:
                continue
        return some

    def _growing(self):
        if self._common:
            for folder in ("files/azureml-logs", "journals"):
                for name in names(os.path.join(self._run, folder)):
                    path = os.path.join(self._run, folder, name)
                    if not name.startswith(".") and os.path.isfile(path):
                        yield path
        for name in names(self._folder):
            if name.endswith(".log"):
                yield os.path.join(self._folder, name)

    def _send_rest(self, path, name, start):
        with open(path, "rb") as file:
            file.seek(start)
            while True:
                piece = file.read(_PIECE)
                if not piece:
                    return True
                self._line.send({"grown": name, "offset": start}, piece)
                start += len(piece)
                self._sizes[name] = start
                self._listen(0)

    # What the script leaves in its working folder: outputs/ and logs/

    def _tell_work(self, ended):
        some = False
        for path in self._work():
            name = os.path.relpath(path, self._run)
            try:
                some = self._tell_file(path, name, ended) or some
            except OSError:
                # It has just gone, or cannot be read.
                continue
        return some

    def _work(self):
        if not self._common:
            return
        for name in ["code/outputs", "code/logs", *self._back]:
            top = os.path.join(self._run, name)
            # A file of data was brought in a folder of its own.
            since = max(changed(top + _PLACED), changed(os.path.dirname(top) + _PLACED))
            for path in files_in(top):
                if os.path.isfile(path) and inside(path, self._run) and changed(path) > since:
                    yield path

    def _tell_file(self, path, name, ended):
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            state = (found.st_ino, found.st_mtime_ns, found.st_size)
            if self._states.get(name) == state:
                return False
            age = time.time() - found.st_mtime
            if not ended and found.st_size > _LARGE and age < _QUIET_SECONDS:
                return False
            start = self._same_beginning(file, name, found.st_size)
            digest = self._digests[name][1] if start else hashlib.sha1()
            file.seek(start)
            self._send_file(file, name, start, found, digest)
        settled = ended or age > _TICK_SECONDS
        if settled:
            self._states[name] = state
            self._line.send({"state": name, "is": state})
        return True

    def _same_beginning(self, file, name, size):
        """How much of what was sent before is still how the file begins: all of it, or nothing."""
        length, digest = self._digests.get(name, (0, None))
        if not length or size < length:
            return 0
        found = hashlib.sha1()
        rest = length
        while rest:
            piece = file.read(min(rest, _PIECE))
            if not piece:
                return 0
            found.update(piece)
            rest -= len(piece)
        return length if found.digest() == digest.digest() else 0

    def _send_file(self, file, name, start, found, digest):
        """The bytes from `start` to the size it had: what is written meanwhile is seen the next time."""
        offset, size = start, found.st_size
        while True:
            piece = file.read(min(_PIECE, size - offset)) if size > offset else b""
            last = offset + len(piece) >= size or not piece
            digest.update(piece)
            mode = found.st_mode & 0o777
            self._line.send({"work": name, "offset": offset, "start": start, "last": last, "mode": mode}, piece)
            offset += len(piece)
            self._listen(0)
            if last:
                self._digests[name] = (offset, digest)
                return


# What the parts above share


class Kit(object):
    """The modules of the kit that this program needs."""

    def __init__(self, folder):
        if folder not in sys.path:
            sys.path.insert(0, folder)
        from trainmaster.node import claim as claims
        from trainmaster.node import process, tree

        self.claims = claims
        self.process = process
        self.tree = tree


def of_kit(folder):
    return Kit(folder)


def facts(root):
    """What this machine is and has."""
    import platform

    place = root
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    room = os.statvfs(place)
    connection = os.environ.get("SSH_CONNECTION", "").split()
    return {
        "root": root,
        "python": sys.executable,
        "version": list(sys.version_info[:3]),
        "machine": os.uname().machine,
        "host": os.uname().nodename,
        "libc": list(platform.libc_ver()),
        "address": connection[2] if len(connection) == 4 else "",
        "cpus": len(os.sched_getaffinity(0)),
        "memory": memory(),
        "gpus": sum(name[6:].isdigit() for name in names("/dev") if name.startswith("nvidia")),
        "free": room.f_bavail * room.f_frsize,
        "variables": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
    }


def memory():
    try:
        with open("/proc/meminfo") as file:
            return int(file.readline().split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return 0


def pythons(version):
    """Where a Python of this version may be, those that are there."""
    name = "python" + version
    home = os.path.expanduser("~")
    places = [os.path.join(folder, name) for folder in os.environ.get("PATH", os.defpath).split(":") if folder]
    places += ["/usr/bin/" + name, "/usr/local/bin/" + name, home + "/.local/bin/" + name]
    for folder in (home + "/.pyenv/versions", home + "/.local/share/uv/python"):
        places += [os.path.join(folder, each, "bin", name) for each in sorted(names(folder), reverse=True)]
    own = "{}.{}".format(*sys.version_info[:2])
    if own == version:
        places.insert(0, sys.executable)
    found = []
    for place in places:
        real = os.path.realpath(place)
        if "shims" not in place and os.access(real, os.X_OK) and real not in found:
            found.append(real)
    return found


def node_folders(run):
    """Of all attempts."""
    tops = [run] + [os.path.join(run, "attempts", each) for each in names(os.path.join(run, "attempts"))]
    return [os.path.join(top, "nodes", each) for top in tops for each in names(os.path.join(top, "nodes"))]


def claim(folder, kit):
    """Takes the claim that no agent has yet, so that one still on its way finds it taken."""
    if os.path.exists(folder + "/agent.json"):
        return
    own = os.getpid()
    place = "{}/.claim-{}".format(folder, own)
    data = {"version": 1, "pid": own, "start_time": kit.process.start_time(own), "boot_id": kit.process.boot_id()}
    write_json(place, dict(data, cgroup=None, cancelled=True))
    try:
        os.link(place, folder + "/agent.json")
    except OSError:
        pass
    os.unlink(place)


def end(folder, kit, number):
    """Signals the agent, if it lives."""
    found = read_json(folder + "/agent.json")
    if found and not found.get("cancelled"):
        if kit.process.is_alive(found["pid"], found["start_time"], found["boot_id"]):
            try:
                os.kill(found["pid"], number)
            except OSError:
                pass


def mark(path):
    """Whether this is the first time."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    except OSError:
        return False
    return True


def spawn(argv, folder):
    """Starts a program that does not end with this connection; returns its process id."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        os.waitpid(child, 0)
        pid = int(os.read(reading, 20))
        os.close(reading)
        return pid
    try:
        os.setsid()
        grandchild = os.fork()
        if grandchild:
            os.write(writing, str(grandchild).encode("ascii"))
            os._exit(0)
        null = os.open(os.devnull, os.O_RDONLY)
        log = os.open(folder + "/agent.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.closerange(3, 1024)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.chdir("/")
        os.execv(argv[0], argv)
    finally:
        os._exit(127)


def linked(blob, place):
    """A content under a name, as a link where that can be."""
    try:
        os.link(blob, place)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS):
            raise
        copied(blob, place)


def copied(blob, place):
    """A content under a name that may be written to."""
    shutil.copyfile(blob, place)
    os.chmod(place, 0o755 if blob.endswith("x") else 0o644)


def inside(path, folder):
    real = os.path.realpath(path)
    return real.startswith(os.path.realpath(folder) + "/")


def remove_abandoned(folder):
    """What was half sent when a connection broke off."""
    for name in names(folder):
        path = os.path.join(folder, name)
        if time.time() - changed(path) / 1e9 > _ABANDONED_SECONDS:
            try:
                os.unlink(path)
            except OSError:
                pass


def files_in(top):
    """The files below a folder, or the file itself."""
    if os.path.isfile(top):
        yield top
    for folder, below, found in os.walk(top):
        below.sort()
        for name in sorted(found):
            yield os.path.join(folder, name)


def changed(path):
    """When a file was last written to; 0 if there is none."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def names(folder):
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def read_json(path):
    try:
        with open(path, "rb") as file:
            return json.loads(file.read().decode("utf-8"))
    except (OSError, ValueError):
        return None


def write_json(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".part", "w") as file:
        file.write(json.dumps(data))
    os.rename(path + ".part", path)


def write_all(handle, data):
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    # What scripts of the login printed comes before this, and is passed over.
    sys.stdout.flush()
    line = Line(0, 1)
    line._write(GREETING)
    try:
        Ferry(line).serve()
    except (Gone, KeyboardInterrupt):
        pass


if __name__ == "__main__":
    main()
