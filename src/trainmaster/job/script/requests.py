"""Job requests: how a script on another machine asks the dispatcher, by a file in the run's folder.

`<id>.ask` appears whole in the folder `letters`; the engine passes it on, and puts `<id>.answer` there
(docs/reference/on-disk.md). Only their owner can read them. The answer is removed as soon as it has been read, because
it may contain a secret.
"""

import os
import shutil
import sys
import time

from trainmaster.job.agent import durable
from trainmaster.job.errors import ModelPathNotFoundException, ServiceException
from trainmaster.job.helper import messages
from trainmaster.job.script.identity import new_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Sequence

    Request = dict[str, Any]

# Beside the folder `letters`: the files that a request is about, if they are not files of the run.
FILES = "kept"
# In the run's folder: what is copied to the dispatcher's machine anyway.
_KNOWN = ("code/outputs", "code/logs")

# A lost connection to a host comes back, and the next client starts a new dispatcher if the old one was killed.
_PATIENCE_SECONDS = 900.0
_NOTICE_SECONDS = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


class JobRequest:
    """One request and its answer; both files are removed at the end of the `with` block."""

    def __init__(self, folder: str, what: str, hint: str) -> None:
        """Errors name `what`, and give `hint` if no answer comes."""
        self._folder = folder
        self._run = os.path.dirname(folder)
        self._name = new_id()
        self._ask = os.path.join(folder, self._name + ".ask")
        self._answer = os.path.join(folder, self._name + ".answer")
        self._files = os.path.join(self._run, FILES, self._name)
        self._what = what
        self._hint = hint

    def __enter__(self) -> "JobRequest":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        for path in (self._ask, self._answer):
            try:
                os.unlink(path)
            except OSError:
                pass
        shutil.rmtree(self._files, ignore_errors=True)

    def exchange(self, request: "Request", seconds: float) -> "Any":
        """The reply to a request."""
        try:
            _write(self._ask, messages.encode(request))
            return self._wait_for_answer(max(seconds, _PATIENCE_SECONDS))
        except OSError as error:
            raise self._failure("{}: {}".format(self._folder, error)) from error

    def _wait_for_answer(self, seconds: float) -> "Any":
        began = time.monotonic()
        pause = _FIRST_PAUSE
        has_noticed = False
        # Lists the folder, because a network file system may cache for long that a file does not exist.
        while os.path.basename(self._answer) not in os.listdir(self._folder):
            waited = time.monotonic() - began
            if waited > seconds:
                raise self._failure("no answer for {:.0f} seconds".format(waited))
            if waited > _NOTICE_SECONDS and not has_noticed:
                has_noticed = True
                text = "trainmaster: still waiting for an answer of the workspace about its {}\n".format(self._what)
                sys.stderr.write(text)
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        with open(self._answer, "rb") as file:
            return messages.decode(file.read())

    def _failure(self, cause: str) -> "ServiceException":
        return ServiceException(
            "the workspace cannot be asked for its {}".format(self._what), cause=cause, hint=self._hint
        )

    # Files that are sent with a request

    def with_files(self, request: "Request") -> "Request":
        """The request with the files that it is about, which are put into the run's folder."""
        args = request["args"]
        if request["op"] == "datastores.send":
            args = dict(args, files=self._put_files(os.path.join(self._run, args["files"]), None))
            return dict(request, args=args, files=True)
        if request["op"] != "models.keep":
            return request
        if not args["of_run"]:
            args = dict(args, path=self._put_files(args["path"], args["child_paths"]), child_paths=None)
        return dict(request, args=args, files=True)

    def with_visible_files(self, request: "Request") -> "Request":
        """The same for a dispatcher that sees the run's folder at the same path, and no other file."""
        if request["op"] != "models.keep":
            return request
        request = self.with_files(request)
        args = request["args"]
        if not args["of_run"]:
            args = dict(args, path=os.path.join(self._run, args["path"]))
        return {"id": request["id"], "op": request["op"], "args": args}

    def _put_files(self, path: str, children: "Sequence[str] | None") -> str:
        if not os.path.exists(path):
            raise ModelPathNotFoundException(
                "there is no file or folder {!r}".format(str(path)[:300]),
                hint="For files of a run use run.register_model(model_name, model_path).",
            )
        within = os.path.relpath(os.path.realpath(path), os.path.realpath(self._run))
        if children is None and within.startswith(tuple(known + "/" for known in _KNOWN)):
            return within
        entry = os.path.basename(path) or "model"
        for source in _choose_files(path, children):
            place(source, os.path.normpath(os.path.join(self._files, entry, os.path.relpath(source, path))))
        return os.path.join(FILES, self._name, entry)


def _choose_files(path: str, children: "Sequence[str] | None") -> "Iterator[str]":
    """The files at `path`; with `children` only those parts of the folder."""
    from trainmaster.job.script.files import walk_files

    for top in [path] if children is None else [_child(path, child) for child in children]:
        for file in walk_files(top) if os.path.isdir(top) else [top]:
            yield file


def _child(root: str, child: str) -> str:
    """The path of a child: v1's were relative to the folder, or began with it."""
    for place in (os.path.join(root, child), os.path.abspath(child)):
        place = os.path.abspath(place)
        if os.path.exists(place) and (place + os.sep).startswith(os.path.join(root, "")):
            return place
    raise ModelPathNotFoundException("child path {!r} is not in {}".format(child, root))


def place(source: str, target: str) -> None:
    """Puts a file at another path, as a hard link if possible."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        shutil.copyfile(source, target)


def _write(path: str, data: bytes) -> None:
    """Writes a file that only its owner can read, and that appears whole."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    durable.write_unflushed(path, data, mode=0o600)
