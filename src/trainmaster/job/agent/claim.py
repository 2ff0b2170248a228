"""agent.json: which agent executes a plan. It is created once, atomically: this is why every run runs only once."""

import errno
import os

from trainmaster.job.agent import jsonfile, machine, process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "agent.json"


def make(folder: str, cgroup: "str | None", **more: object) -> bool:
    """Claims the plan in `folder` for this process; False if another agent has claimed it. Raises OSError."""
    own = os.getpid()
    return take(
        os.path.join(folder, NAME),
        dict(
            more,
            version=1,
            pid=own,
            start_time=process.start_time(own),
            boot_id=process.boot_id(),
            host=os.environ.get("TRAINMASTER_HOST_NAME") or os.uname().nodename,
            cgroup=cgroup,
            machine=machine.describe(),
        ),
    )


def take(path: str, data: "dict[str, Any]") -> bool:
    """Creates the file `path` with `data`; False if it exists already. Only one process can succeed. Raises OSError."""
    if os.path.lexists(path):
        return False
    text = jsonfile.dumps(data)
    # The name contains the host because machines with the same process ids may share the folder.
    temporary = "{}.{}.{}.part".format(path, os.uname().nodename, os.getpid())
    try:
        jsonfile.write_new(temporary, text)
        os.link(temporary, path)
    except OSError as error:
        if error.errno == errno.EEXIST:
            return False
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            raise
        return _take_without_links(path, text)
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
    return True


def _take_without_links(path: str, text: str) -> bool:
    """For file systems without hard links: equally exclusive, but the file is empty for a moment."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    try:
        os.write(handle, text.encode("ascii"))
    finally:
        os.close(handle)
    return True
