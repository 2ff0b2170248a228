"""The folders a script expects: its code, outputs/ and logs/ in it, and its data linked."""

import errno
import os
import time

from trainmaster.job.agent import jsonfile
from trainmaster.job.agent.interrupts import Interrupted
from trainmaster.job.agent.spawn import StartError, encode


def prepare(plan):
    """Lays out what the plan says. Raises StartError, AzureMLException from the layout, or Interrupted."""
    folder = encode(plan.folder)
    code, files = os.path.join(folder, b"code"), os.path.join(folder, b"files")
    if plan.layout is not None:
        # Loaded here only: most nodes and most reruns have nothing to lay out.
        from trainmaster.job.agent.layout import lay_out

        manifest, blobs = plan.layout
        lay_out(manifest, blobs, os.path.join(plan.folder, "code"))
    elif plan.node != 0:
        _wait_for_first_node(folder, code)
    make(code)
    make(files)
    for name in (b"outputs", b"logs"):
        make(os.path.join(code, name))
        link(os.path.join(files, name), os.path.join(b"..", b"code", name))
    for path, target in plan.links:
        place = os.path.join(code, encode(path))
        make(os.path.dirname(place))
        link(place, encode(target))
    for process in plan.processes:
        make(os.path.dirname(encode(process.log)))


def _wait_for_first_node(folder, code):
    """Node 0 lays the code out for all of them, and the folder appears when it is complete.

    There is nothing to wait on across machines, so this looks now and then. It ends at the latest when somebody
    stops the run, which the end of node 0's agent leads to.
    """
    result = os.path.join(folder, b"nodes", b"0", b"result.json")
    while not os.path.isdir(code):
        if os.path.exists(result) and not os.path.isdir(code):
            if _was_cancelled(result):
                # Whoever told node 0 to stop means all of them, and may not have come to this one yet.
                raise Interrupted
            cause = "Node 0 ended without laying out the code."
            raise StartError("there is no code to run", cause, "See the error of node 0.")
        time.sleep(0.01)


def _was_cancelled(result):
    try:
        return jsonfile.read(result).get("reason") == "cancelled"
    except (OSError, ValueError):
        return False


def make(path):
    """The folder `path` and those above it, if they are not there yet."""
    try:
        if not os.path.isdir(path):
            os.makedirs(path, exist_ok=True)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTDIR):
            raise _in_the_way(path) from None
        raise _refused(path, error) from None


def link(path, target):
    """A symbolic link; what is there already is kept, and refused unless it is the very same link."""
    try:
        os.symlink(target, path)
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise _refused(path, error) from None
        if not (os.path.islink(path) and os.readlink(path) == target) and not _is_moved_folder(path, target):
            raise _in_the_way(path) from None


def _is_moved_folder(path, target):
    """Whether files/outputs (or files/logs) is a real folder already, as it is once a run has ended."""
    return target.startswith(b"../code/") and os.path.isdir(path)


def _in_the_way(path):
    text = path.decode("utf-8", "replace")
    return StartError(
        "{}: something else is there".format(text),
        "Trainmaster needs this name for the run, and does not replace what the source folder brought.",
        "Rename it in the source folder, or choose another path for the data.",
    )


def _refused(path, error):
    text = path.decode("utf-8", "replace")
    hint = "Check that the disk has room and that the run's folder belongs to you."
    return StartError("{}: {}".format(text, error.strerror.lower()), "The run's folders cannot be made.", hint)
