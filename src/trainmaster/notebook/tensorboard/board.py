"""Tensorboard: starts TensorBoard on the logs of runs, which may still be growing."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.notebook.tensorboard.export import as_runs

if TYPE_CHECKING:
    from trainmaster.sdk.backend.backend import Mirror
    from trainmaster.sdk.run.run import Run

_END_SECONDS = 5.0
# How often the logs of runs on a server are fetched.
_UPDATE_SECONDS = 2.0


class Tensorboard:
    """TensorBoard on the `logs` folders of runs. It shows what a script writes to ./logs within seconds.

    >>> board = Tensorboard([run])                  # doctest: +SKIP
    >>> board.start()                               # doctest: +SKIP
    'http://localhost:6006/'
    >>> board.stop()                                # doctest: +SKIP

    `local_root` receives one link or folder per run (default: a temporary folder). If `port` is in use, the next free
    one is taken; `start` returns the address. TensorBoard ends with `stop`, or with the program that started it.
    """

    def __init__(
        self,
        runs: Any,
        local_root: str | os.PathLike[str] | None = None,
        port: int = 6006,
        use_display_name: bool = False,
    ) -> None:
        self._runs = as_runs(runs, "runs")
        if not isinstance(port, int) or not 1 <= port <= 65535:
            raise UserErrorException(f"port must be a number from 1 to 65535, not {port!r}")
        self._local_root = local_root
        self._port = port
        self._use_display_name = use_display_name
        self._mirrors: list[Mirror] = []
        self._updater: MirrorUpdater | None = None
        self._temporary: Path | None = None
        self._process: subprocess.Popen[str] | None = None
        self._url = ""

    def start(self, start_browser: bool = False) -> str:
        """Starts TensorBoard, if it does not run yet, and returns its address."""
        if self._process is None or self._process.poll() is not None:
            self.stop()
            _check_package()
            try:
                self._start(self._link_runs())
            except BaseException:
                self.stop()
                raise
        if start_browser:
            import webbrowser

            webbrowser.open(self._url)
        return self._url

    def stop(self) -> None:
        """Ends TensorBoard and removes its folders of logs. The logs stay with their runs."""
        atexit.unregister(self.stop)
        if self._process is not None:
            _end(self._process)
            self._process = None
        if self._updater is not None:
            self._updater.stop()
            self._updater = None
        for mirror in self._mirrors:
            mirror.close()
        self._mirrors = []
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None

    def _link_runs(self) -> Path:
        if self._local_root is None:
            root = self._temporary = Path(tempfile.mkdtemp(prefix="trainmaster-tensorboard-"))
        else:
            root = Path(self._local_root).absolute()
        for run, name in zip(self._runs, link_names(self._runs, self._use_display_name), strict=True):
            self._mirrors.append(_mirror(run, root / name))
        later = [mirror for mirror in self._mirrors if not mirror.is_live]
        if later:
            self._updater = MirrorUpdater(later)
        return root

    def _start(self, root: Path) -> None:
        command = [sys.executable, "-P", "-m", "trainmaster.notebook.tensorboard.process", str(root), str(self._port)]
        with tempfile.TemporaryFile("w+", errors="replace") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
            atexit.register(self.stop)
            assert self._process.stdout is not None
            answer = _parse_answer(self._process.stdout.readline())
            if "url" not in answer:
                log.seek(0)
                cause = answer.get("error") or "\n".join(log.read().splitlines()[-5:])
                raise UserErrorException("TensorBoard did not start", cause=cause)
        self._url = str(answer["url"])


def _mirror(run: Run, place: Path) -> Mirror:
    try:
        return run.experiment.workspace.backend.run_files(run.id).mirror("logs", place)
    except OSError as error:
        raise UserErrorException(
            f"cannot create {place}, the folder for the logs of run {run.id}",
            cause=error.strerror or str(error),
            hint="Choose another folder as local_root, or omit it to use a temporary one.",
        ) from None


class MirrorUpdater:
    """Fetches new logs of runs on a server while TensorBoard shows them."""

    def __init__(self, mirrors: Sequence[Mirror]) -> None:
        self._mirrors = mirrors
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._update, name="TensorBoard logs", daemon=True)
        self._thread.start()

    def _update(self) -> None:
        while not self._stopped.wait(_UPDATE_SECONDS):
            for mirror in self._mirrors:
                # The next time may succeed: a server that restarts must not end the display.
                with contextlib.suppress(TrainmasterError, OSError):
                    mirror.update()

    def stop(self) -> None:
        """Ends the updates. Returns when nothing is written any more."""
        self._stopped.set()
        self._thread.join()


def link_names(runs: list[Run], use_display_name: bool) -> list[str]:
    """The name that TensorBoard shows for each run: its id, or its display name, with the id where two are equal."""
    if not use_display_name:
        return [run.id for run in runs]
    shown = [re.sub(r"[^\w .+-]", "_", run.display_name).strip(" .") or run.id for run in runs]
    return [name if shown.count(name) == 1 else f"{name} ({run.id})" for run, name in zip(runs, shown, strict=True)]


def _check_package() -> None:
    if find_spec("tensorboard") is None:
        raise UserErrorException(
            "TensorBoard is not installed in this Python",
            cause=sys.executable,
            hint="pip install tensorboard",
        )


def _parse_answer(line: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(line)
    except ValueError:
        return {}
    return answer


def _end(process: subprocess.Popen[str]) -> None:
    """Closes the standard input of the process, which makes it end; kills it if it does not."""
    assert process.stdin is not None and process.stdout is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
