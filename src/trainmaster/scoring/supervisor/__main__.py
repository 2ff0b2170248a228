"""Locks the service's folder, binds its address, detaches and supervises. Earlier errors are printed as JSON."""

from __future__ import annotations

import fcntl
import json
import os
import sys
from pathlib import Path

from trainmaster.job.agent import jsonfile, process
from trainmaster.job.errors import TrainmasterError, WebserviceException
from trainmaster.scoring.control import TAKEN, sweep
from trainmaster.scoring.server import numbers
from trainmaster.scoring.supervisor.address import listen
from trainmaster.scoring.supervisor.signals import Signals
from trainmaster.scoring.supervisor.supervisor import Supervisor
from trainmaster.shared.service_plan import ServiceFiles, read_plan


def main(folder: Path) -> int:
    """Start a supervisor. Returns 0 once it runs, TAKEN if one is already running, or 1 after printing an error."""
    files = ServiceFiles(folder)
    lock = os.open(files.lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return TAKEN
    # Leftovers of a killed supervisor.
    sweep(folder)
    try:
        plan = read_plan(folder)
        numbers.make(str(files.numbers))
        listening = listen(files.address, plan.host, plan.port)
    except TrainmasterError as error:
        print(json.dumps(error.to_wire()))
        return 1
    except OSError as error:
        problem = WebserviceException(
            "the folder of the service cannot be used", cause=f"{error.filename}: {error.strerror}"
        )
        print(json.dumps(problem.to_wire()))
        return 1
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        # The supervisor writes nothing. The pipe closes when it can receive signals, or when it has died.
        os.read(reading, 1)
        return 0
    os.close(reading)
    _detach(files)
    signals = Signals()
    _claim(files)
    os.close(writing)
    os._exit(Supervisor(plan, listening, signals).run())


def _detach(files: ServiceFiles) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    log = os.open(files.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)


def _claim(files: ServiceFiles) -> None:
    own = os.getpid()
    claim = {"version": 1, "pid": own, "start_time": process.start_time(own), "boot_id": process.boot_id()}
    jsonfile.write(str(files.claim), claim)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
