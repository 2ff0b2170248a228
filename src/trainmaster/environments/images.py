"""Container images on this machine: inspect one, and, in a separate process, fetch it and test an environment in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainmaster.environments.containers import Command, Container, Engine
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.orphans import die_with

_ANSWER_SECONDS = 30.0
_LAST_LINES = 10
# Modules that need system libraries, unless Python was built with its own copies.
_PROBE = """
import importlib, sys
for name in ("ctypes", "hashlib", "ssl", "zlib", "bz2", "lzma", "sqlite3", "decimal"):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        pass
    except ImportError as error:
        sys.exit("{}: {}".format(name, error))
"""


@dataclass(frozen=True)
class Image:
    """An image that the engine has stored."""

    id: str
    path: str = Container.path
    """The PATH of its processes."""


def find(engine: Engine, name: str, environ: Mapping[str, str]) -> Image | None:
    """Find the image by name, if the engine has it. Apptainer fetches and caches images by itself."""
    if engine.name == "apptainer":
        return Image(name)
    words = [engine.program, "image", "inspect", "--format", "{{.Id}} {{json .Config.Env}}", name]
    try:
        asked = subprocess.run(
            words,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentException(
            f"{engine.name} did not answer within {_ANSWER_SECONDS:g} s when asked for image {name!r}"
        ) from None
    return _image(asked.stdout.decode(errors="replace")) if asked.returncode == 0 else None


def _image(said: str) -> Image:
    """
    >>> _image('sha256:12 ["PATH=/opt/bin:/bin","LANG=C"]'), _image("12 null") == Image("12")
    (Image(id='sha256:12', path='/opt/bin:/bin'), True)
    """
    name, _, variables = said.strip().partition(" ")
    pairs = dict(each.partition("=")[::2] for each in json.loads(variables or "null") or ())
    return Image(name, pairs.get("PATH") or Container.path)


def probe(python: str) -> tuple[str, ...]:
    """The command that tests whether this Python works in an image."""
    return (python, "-I", "-c", _PROBE)


def order(engine: Engine, image: str, fetch: bool, trial: Command | None) -> bytes:
    """The standard input of `python -m trainmaster.environments.images`."""
    return json.dumps(
        {
            "parent": os.getpid(),
            "image": image,
            "engine": engine.name,
            "fetch": [engine.program, "pull", image] if fetch else None,
            "trial": [list(trial.argv), dict(trial.env)] if trial else None,
        }
    ).encode()


def main() -> int:
    """Do what standard input describes; on failure the last line of standard error is the error as JSON."""
    ordered = json.load(sys.stdin)
    die_with(ordered["parent"])
    try:
        if ordered["fetch"]:
            _fetch(ordered["image"], ordered["engine"], ordered["fetch"])
        if ordered["trial"]:
            _try(ordered["image"], *ordered["trial"])
    except EnvironmentException as error:
        print(json.dumps(error.to_wire()), file=sys.stderr)
        return 1
    return 0


def _fetch(image: str, engine: str, command: Sequence[str]) -> None:
    print(f"$ {engine} pull {image}", flush=True)
    code, said = _run(command, os.environ)
    if code:
        raise EnvironmentException(
            f"image {image!r} cannot be fetched",
            cause=said,
            hint=f"Check the name: '{engine} pull {image}' must work on this machine. For a private image, run "
            f"'{engine} login' first.",
        )


def _try(image: str, command: Sequence[str], variables: Mapping[str, str]) -> None:
    print(f"testing the environment in image {image}", flush=True)
    code, said = _run(command, variables)
    if code:
        raise EnvironmentException(
            f"the Python of this environment does not run in image {image!r}",
            cause=said,
            hint="The image needs glibc, not much older than this machine's. A Python from uv "
            "('uv python install') has the fewest requirements. Without pip_packages and conda_packages the script "
            "uses the image's own Python and packages.",
        )


def _run(command: Sequence[str], variables: Mapping[str, str]) -> tuple[int, str]:
    """Run a command and print its output live; return its exit code and last lines."""
    last: list[str] = []
    process = subprocess.Popen(
        command, env=dict(variables), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    for line in process.stdout:
        text = line.decode(errors="replace").rstrip()
        print(text, flush=True)
        last = [*last, text][-_LAST_LINES:]
    return process.wait(), "\n".join(last)


if __name__ == "__main__":
    sys.exit(main())
