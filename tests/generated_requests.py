"""Requests that schemathesis makes of a service's own description: sent, and kept with what came back."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SECONDS = 800
LEAKS = re.compile(rb"Traceback|File \"|site-packages|score\.py|/tmp|/home|/root|Error\b", re.IGNORECASE)
"""What an answer to a wrong request must not have: where the service lives, and the words of its code."""

_CHECKS = ("not_a_server_error", "unsupported_method", "status_code_conformance", "content_type_conformance")
_CHECKS += ("response_schema_conformance",)


@dataclass(frozen=True)
class Exchange:
    """One request and its answer."""

    method: str
    url: str
    status: int
    answer: str


class Generated:
    """schemathesis at work on the service at `port`, from now on; `exchanges` waits for its end."""

    def __init__(self, port: int, folder: Path, *options: str, checks: tuple[str, ...] = (), examples: int) -> None:
        self._folder = folder
        folder.mkdir()
        command = [str(Path(sys.executable).with_name("schemathesis")), "run"]
        command += [f"http://127.0.0.1:{port}/swagger.json", "--checks", ",".join((*_CHECKS, *checks))]
        command += ["--phases", "coverage,fuzzing", "--max-examples", str(examples), "--seed", "7"]
        command += ["--generation-database", "none", "--report-har-path", "exchanges.har", *options]
        with open(folder / "said", "w") as said:
            self._process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=said)

    def exchanges(self) -> list[Exchange]:
        """All that was asked and answered, if schemathesis found nothing wrong with it, and no answer leaks."""
        code = self._process.wait(SECONDS)
        assert code == 0, (self._folder / "said").read_text()[-5000:]
        entries = json.loads((self._folder / "exchanges.har").read_text())["log"]["entries"]
        found = [
            Exchange(
                each["request"]["method"],
                each["request"]["url"],
                each["response"]["status"],
                each["response"]["content"].get("text", ""),
            )
            for each in entries
        ]
        for each in found:
            assert 200 <= each.status < 500, each
            assert "/swagger.json" in each.url or LEAKS.search(each.answer.encode()) is None, each
        return found

    def end(self) -> None:
        """Nothing is left of it, whatever happened."""
        self._process.kill()
        self._process.wait()
