"""agent.json: which agent carries out a plan. Made once, atomically: this is why every run runs once."""

import errno
import os

from trainmaster.job.agent import jsonfile, process

NAME = "agent.json"


def make(folder, cgroup, **more):
    """Claims the plan in `folder` for this process; False if another agent has it. Raises OSError."""
    own = os.getpid()
    return take(
        os.path.join(folder, NAME),
        dict(
            more,
            version=1,
            pid=own,
            start_time=process.start_time(own),
            boot_id=process.boot_id(),
            host=os.uname().nodename,
            cgroup=cgroup,
        ),
    )


def take(place, data):
    """Makes the file `place`, which whoever makes it has; False if another has it. Raises OSError."""
    if os.path.lexists(place):
        return False
    text = jsonfile.dumps(data)
    # The host is in the name because the folder may be shared by machines with the same process ids.
    temporary = "{}.{}.{}.part".format(place, os.uname().nodename, os.getpid())
    try:
        jsonfile.write_new(temporary, text)
        os.link(temporary, place)
    except OSError as error:
        if error.errno == errno.EEXIST:
            return False
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            raise
        return _make_without_links(place, text)
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
    return True


def _make_without_links(place, text):
    """For file systems without hard links: as exclusive, though for a moment the file is there but empty."""
    try:
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    try:
        os.write(handle, text.encode("ascii"))
    finally:
        os.close(handle)
    return True
