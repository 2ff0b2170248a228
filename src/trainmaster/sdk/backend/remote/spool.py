"""What this program logs to runs on a server: written to this machine's disk, and sent by a thread.

`log` returns when the disk has the record, so a network that is gone neither loses anything nor stops the training.
"""

from __future__ import annotations

import atexit
import os
import shutil
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from trainmaster.job.agent import durable
from trainmaster.job.errors import TrainmasterError
from trainmaster.job.script.journal import Journal
from trainmaster.sdk.backend.remote.answers import UnavailableException
from trainmaster.sdk.backend.remote.connection import RemoteConnection
from trainmaster.sdk.backend.remote.delivery import Delivery
from trainmaster.sdk.backend.remote.notices import notify
from trainmaster.sdk.backend.remote.spool_folder import Finish, SpoolFolder, spool_of
from trainmaster.shared.file_events import FileEvents, ready
from trainmaster.shared.retry import Backoff

# Values that are logged within this time are sent together.
_HOLD_SECONDS = 0.05
# How often the folder is looked at where the system does not report changes.
_LOOK_SECONDS = 0.1
_WAKE_SECONDS = 1.0
# How long a program waits for a server that does not answer, where it can go on without it.
_NOTICE_SECONDS = 3.0
# How often the server is told that the program is alive.
RENEW_SECONDS = 20.0
# How long the end of the program, or a request, waits for what was logged before it.
_END_SECONDS = 20.0


class Spool:
    """The spools of all runs that this process logs to, in one workspace."""

    def __init__(self, connection: RemoteConnection) -> None:
        self._connection = connection
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._guard = threading.RLock()
        self._open: dict[str, _OpenRun] = {}
        self._created: dict[str, dict[str, Any]] = {}
        self._thread: threading.Thread | None = None
        self._backoff = Backoff(first=0.5, longest=30.0)
        self._next_try = 0.0
        self._has_noticed = False
        self._is_ending = False

    def open_journal(self, run_id: str, writer: str) -> Journal:
        """The journal of one writer, on this machine's disk."""
        return Journal(self._open_run(run_id).folder.journals / f"{writer}.jsonl")

    def text_path(self, run_id: str, name: str) -> Path:
        """The file for printed text, which is sent as it grows."""
        return self._open_run(run_id).folder.text_path(name)

    def note_created(self, records: list[dict[str, Any]]) -> None:
        """Remembers the runs that this program created. The server hears that the program is alive."""
        with self._enter_process():
            for record in records:
                if not record.get("spec"):
                    self._created[str(record["id"])] = record
                    self._start_thread()

    def has_created(self, run_id: str) -> bool:
        """Whether this process created the run, and the run has not ended."""
        with self._enter_process():
            return run_id in self._created

    def deliver(self) -> None:
        """Sends what was logged so far, so that the answer to the next request takes it into account."""
        with self._enter_process():
            if self._open and time.monotonic() >= self._next_try:
                self._send_all(time.monotonic() + _END_SECONDS)

    def get(self, args: dict[str, Any]) -> Any:
        """Calls `runs.get`. If the network is gone, a run of this program is as this program left it."""
        run_id = str(args.get("run_id", ""))
        known = self._created.get(run_id)
        if known is None:
            return self._connection.send("runs.get", args)
        try:
            return self._connection.send("runs.get", args, patience=self.patience(run_id))
        except UnavailableException as error:
            with self._enter_process():
                self._notice(error)
            return known

    def patience(self, run_id: str) -> float | None:
        """How long a request about a run is repeated: not long if the program can go on without the answer."""
        if run_id not in self._created:
            return None
        return 0.0 if time.monotonic() < self._next_try else _NOTICE_SECONDS

    def keep_file(self, run_id: str, name: str, source: Any) -> bool:
        """Keeps a file of a run of this program until the network is back. False if it is not a run of this program."""
        with self._enter_process():
            if run_id not in self._created:
                return False
            target = self._open_run(run_id).folder.text_path(name)
            if target.exists():
                return False
            partial = target.with_name(f".partial-{os.urandom(8).hex()}")
            shutil.copyfile(source, partial)
            durable.flush_one(partial)
            partial.rename(target)
            return True

    def finish(self, args: dict[str, Any]) -> Any:
        """Ends a run after everything that was logged to it has arrived.

        If the network is gone, the end is kept too, and the record says what the server will say.
        """
        run_id = str(args.get("run_id", ""))
        with self._enter_process():
            own = self._open.get(run_id)
            if own is None:
                created = self._created.get(run_id)
                if created is None:
                    return self._connection.send("runs.finish", args)
                own = self._open_run(run_id)
            own.folder.write_finish(Finish(args, uuid.uuid4().hex))
            try:
                answer = self._end(own)
            except UnavailableException as error:
                self._notice(error)
                record = self._created.get(run_id)
                if record is None:
                    raise
                left = {**record, "status": args["status"], "ended_at": time.time(), "error": args.get("error")}
                self._created[run_id] = left
                return left
            self._created.pop(run_id, None)
            return answer

    def _end(self, own: _OpenRun) -> Any:
        """Sends the rest of a run and its end; the answer is its record."""
        own.delivery.send_new()
        finish = own.folder.read_finish()
        assert finish is not None
        try:
            answer = self._connection.send("runs.finish", finish.args, finish.key, patience=_NOTICE_SECONDS)
        except UnavailableException:
            raise
        except TrainmasterError:
            # Refused: the program gets the error, and nobody tries it again.
            own.folder.drop_finish()
            raise
        self._close(own)
        return answer

    def _close(self, own: _OpenRun) -> None:
        self._open.pop(own.folder.run_id, None)
        own.leave()

    def _open_run(self, run_id: str) -> _OpenRun:
        with self._enter_process():
            own = self._open.get(run_id)
            if own is None:
                folder = spool_of(self._connection.client.address, self._connection.workspace, run_id)
                own = self._open[run_id] = _OpenRun(folder, Delivery(self._connection, folder), folder.enter())
                self._start_thread()
            return own

    def _enter_process(self) -> threading.RLock:
        # A forked child has no thread, and its parent's lock may be held. The parent sends what the child logs to its
        # journals, and what the child creates itself gets a thread of its own.
        if self._process != os.getpid():
            self._start()
        return self._guard

    def _start_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="trainmaster-spool", daemon=True)
            self._thread.start()
            atexit.register(self._end_program)

    def _run(self) -> None:
        renewed = time.monotonic()
        with FileEvents() as events:
            while True:
                with self._guard:
                    folders = [
                        place for own in self._open.values() for place in (own.folder.journals, own.folder.texts)
                    ]
                are_watched = [events.watch(folder) for folder in folders]
                with self._guard:
                    if time.monotonic() >= self._next_try:
                        self._send_all(time.monotonic() + _END_SECONDS)
                        if time.monotonic() - renewed >= RENEW_SECONDS:
                            renewed = time.monotonic()
                            self._renew()
                if events.works and all(are_watched) and self._next_try <= time.monotonic():
                    if ready(_WAKE_SECONDS, events):
                        time.sleep(_HOLD_SECONDS)
                        events.clear()
                else:
                    time.sleep(_LOOK_SECONDS)

    def _send_all(self, deadline: float) -> None:
        """Sends what is new of all runs. A network that is gone is tried again later."""
        for own in list(self._open.values()):
            if own.is_refused or time.monotonic() > deadline:
                continue
            try:
                own.delivery.send_new()
            except UnavailableException as error:
                self._notice(error)
                return
            except TrainmasterError as error:
                own.is_refused = True
                notify(
                    f"the server does not accept what is logged to run {own.folder.run_id}: {error.message} "
                    f"It is kept in {own.folder.path}."
                )
        self._backoff.reset()
        self._next_try = 0.0
        if self._has_noticed and not self._is_ending:
            self._has_noticed = False
            notify(f"{self._connection.client.address} answers again; what was logged meanwhile has been sent")

    def _renew(self) -> None:
        """Tells the server that this program is alive, so that its runs stay Running."""
        for run_id in list(self._created):
            try:
                self._connection.send("runs.renew", {"run_id": run_id}, seconds=_END_SECONDS, patience=0.0)
            except UnavailableException as error:
                self._notice(error)
                return
            except TrainmasterError:
                # It has ended, or was deleted.
                self._created.pop(run_id, None)

    def _notice(self, error: UnavailableException) -> None:
        self._next_try = time.monotonic() + self._backoff.next_pause()
        if not self._has_noticed:
            self._has_noticed = True
            notify(
                f"{self._connection.client.address} does not answer; the program continues, and what it logs is kept "
                f"on this machine until it can be sent. {error.cause}".rstrip()
            )

    def _end_program(self) -> None:
        """At the end of the program: sends the rest, or says what is left."""
        if self._process != os.getpid():
            return
        with self._guard:
            # What follows says enough.
            self._is_ending = self._has_noticed = True
            deadline = time.monotonic() + _END_SECONDS
            self._send_all(deadline)
            for own in list(self._open.values()):
                left = own.delivery.pending
                if left or own.folder.read_finish() is not None:
                    notify(
                        f"{left} bytes logged to run {own.folder.run_id} are not on the server yet. "
                        "'trainmaster sync' sends them."
                    )
                else:
                    self._close(own)


class _OpenRun:
    """A run that this process logs to."""

    def __init__(self, folder: SpoolFolder, delivery: Delivery, lock: int) -> None:
        self.folder = folder
        self.delivery = delivery
        self.is_refused = False
        self._lock = lock

    def leave(self) -> None:
        """The server has everything. The folder goes, unless another program logs to the run too."""
        if self.folder.claim(self._lock):
            self.folder.remove()
        os.close(self._lock)
