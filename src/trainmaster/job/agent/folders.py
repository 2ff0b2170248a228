"""The folders that a script expects: its code with outputs/ and logs/ in it, and links to its data."""

import errno
import os
import time

from trainmaster.job.agent import jsonfile
from trainmaster.job.agent.interrupts import Interrupted
from trainmaster.job.agent.spawn import StartError, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trainmaster.job.agent.plan import Plan


def prepare(plan: "Plan") -> None:
    """Creates the folders and links of the plan. Raises StartError, Interrupted, or SnapshotException."""
    folder = encode(plan.folder)
    code, files = os.path.join(folder, b"code"), os.path.join(folder, b"files")
    if plan.layout is not None:
        # Imported only here: most nodes and most reruns have nothing to lay out.
        from trainmaster.job.agent.layout import lay_out

        manifest, blobs = plan.layout
        lay_out(manifest, blobs, os.path.join(plan.folder, "code"))
    elif plan.node != 0:
        _wait_for_first_node(folder, code)
    make_folder(code)
    make_folder(files)
    for name in (b"outputs", b"logs"):
        make_folder(os.path.join(code, name))
        make_link(os.path.join(files, name), os.path.join(b"..", b"code", name))
    for path, target in plan.links:
        link = os.path.join(code, encode(path))
        make_folder(os.path.dirname(link))
        make_link(link, encode(target))
    for process in plan.processes:
        make_folder(os.path.dirname(encode(process.log)))
    if plan.hostfile is not None:
        try:
            plan.hostfile.write()
        except OSError as error:
            raise _cannot_create(encode(plan.hostfile.folder), error) from None


def _wait_for_first_node(folder: bytes, code: bytes) -> None:
    """Waits for node 0, which lays out the code for all nodes. The folder appears when it is complete.

    No event is available across machines, so this polls. It ends at the latest when the run is stopped, which happens
    after the agent of node 0 has ended.
    """
    result = os.path.join(folder, b"nodes", b"0", b"result.json")
    while not os.path.isdir(code):
        if os.path.exists(result) and not os.path.isdir(code):
            if _was_cancelled(result):
                # The request to stop is meant for all nodes, and may not have reached this one yet.
                raise Interrupted
            cause = "Node 0 ended without laying out the code."
            raise StartError("there is no code to run", cause, "See the error of node 0.")
        time.sleep(0.01)


def _was_cancelled(result: bytes) -> bool:
    try:
        return bool(jsonfile.read(result).get("reason") == "cancelled")
    except (OSError, ValueError):
        return False


def make_folder(path: bytes) -> None:
    """Creates the folder `path` and its parents if they are missing. Raises StartError."""
    try:
        if not os.path.isdir(path):
            os.makedirs(path, exist_ok=True)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTDIR):
            raise _name_conflict(path) from None
        raise _cannot_create(path, error) from None


def make_link(path: bytes, target: bytes) -> None:
    """Creates a symbolic link, unless the same one exists. Never replaces anything else. Raises StartError."""
    try:
        os.symlink(target, path)
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise _cannot_create(path, error) from None
        if not (os.path.islink(path) and os.readlink(path) == target) and not _is_moved_folder(path, target):
            raise _name_conflict(path) from None


def _is_moved_folder(path: bytes, target: bytes) -> bool:
    """Whether files/outputs (or files/logs) is a real folder already, as it is once a run has ended."""
    return target.startswith(b"../code/") and os.path.isdir(path)


def _name_conflict(path: bytes) -> StartError:
    text = path.decode("utf-8", "replace")
    return StartError(
        "{}: the name is already taken".format(text),
        "Trainmaster needs this name for the run and does not replace files of the source folder.",
        "Rename the file in the source folder, or choose another path for the data.",
    )


def _cannot_create(path: bytes, error: OSError) -> StartError:
    text = path.decode("utf-8", "replace")
    hint = "Check that the disk has free space and that you own the run's folder."
    why = (error.strerror or str(error)).lower()
    return StartError("{}: {}".format(text, why), "The run's folders cannot be created.", hint)
