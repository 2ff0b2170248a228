"""The files of a package that are written and not copied: how it starts, in which image, and what a person reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PORT = 5001
"""Inside an image; that of v1's."""
PIP, CERTIFICATES = "pip", "pip-cert"
"""Secrets of a build: a pip.conf, and the certificates that it is to trust. Neither becomes a part of the image."""
CODE = "code"
"""The folder that the script works in."""
MODELS = f"{CODE}/azureml-models"
"""Where `Model.get_model_path` looks from there."""

APP = '''"""The scoring service: `uvicorn app:app`, anywhere the packages of requirements.lock are."""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# What the script may import of azureml: the names of v1 that work without a workspace.
sys.path[:0] = [HERE, os.path.join(HERE, "kit")]

with open(os.path.join(HERE, "server.json"), encoding="utf-8") as file:
    for name, value in json.load(file)["variables"].items():
        os.environ.setdefault(name, value)

from server.application import from_file  # noqa: E402

app = from_file(os.path.join(HERE, "server.json"))
'''

START = """#!/bin/sh
# Serves on the address HOST:PORT; further words go to uvicorn.
cd "$(dirname "$0")" && exec uvicorn app:app --host "${HOST:-127.0.0.1}" --port "${PORT:-5001}" "$@"
"""

IGNORED = "__pycache__\n*.pyc\n.venv\n"


@dataclass(frozen=True)
class Contents:
    """What a package is made of, as far as its texts say it."""

    name: str
    entry_script: str
    models: tuple[str, ...]
    python: str
    """Major.minor."""
    variables: Mapping[str, str] = field(default_factory=dict)
    local: tuple[str, ...] = ()
    """Packages that came from a folder of the machine it was made on."""
    folder_name: str = ""
    """The source folder below `code/`; empty where the script lies in `code/` itself."""

    @property
    def code(self) -> str:
        """The source folder, below the package."""
        return f"{CODE}/{self.folder_name}" if self.folder_name else CODE


def model_dir(models: Sequence[str]) -> str:
    """v1's rule for AZUREML_MODEL_DIR, below the package: the folder of the one model, or that of all.

    >>> model_dir(["mnist:3"]), model_dir(["a:1", "b:1"])
    ('code/azureml-models/mnist/3', 'code/azureml-models')
    """
    if len(models) != 1:
        return MODELS
    name, _, version = models[0].rpartition(":")
    return f"{MODELS}/{name}/{version}"


def server_settings(contents: Contents) -> str:
    """`server.json`; its paths are relative to itself."""
    settings: dict[str, Any] = {
        "name": contents.name,
        "code": contents.code,
        "working": CODE,
        "entry_script": contents.entry_script,
        "model_dir": model_dir(contents.models) if contents.models else "",
        "keys_file": "",
        "variables": dict(contents.variables),
    }
    return json.dumps(settings, indent=2) + "\n"


def dockerfile(contents: Contents) -> str:
    """An image of the package."""
    return f"""FROM python:{contents.python}-slim
WORKDIR /service
COPY requirements.lock .
RUN --mount=type=secret,id={PIP},target=/etc/pip.conf --mount=type=secret,id={CERTIFICATES} \\
    pip install --no-cache-dir --no-deps --require-hashes -r requirements.lock
COPY . .
RUN useradd --system scoring
USER scoring
ENV PYTHONUNBUFFERED=1 HOST=0.0.0.0 PORT={PORT}
EXPOSE {PORT}
HEALTHCHECK CMD python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$PORT/readyz', timeout=3)"
CMD ["sh", "start.sh"]
"""


def readme(contents: Contents) -> str:
    """What a person who gets the folder has to know."""
    models = "\n".join(f"- `{MODELS}/{each.replace(':', '/')}`" for each in contents.models) or "- none"
    return f"""# {contents.name}

A scoring service. It needs Python {contents.python} and the packages of `requirements.lock`, and nothing of the machine
it was made on.

    python{contents.python} -m venv .venv
    .venv/bin/pip install --no-deps --require-hashes -r requirements.lock
    PATH=$PWD/.venv/bin:$PATH sh start.sh

or as an image: `docker build -t {contents.name} .` and `docker run -p {PORT}:{PORT} {contents.name}`. If pip has an
index of its own: `docker build --secret id={PIP},src=$HOME/.config/pip/pip.conf -t {contents.name} .`

It answers on `HOST:PORT` (127.0.0.1:{PORT} unless these variables say otherwise): `POST /score` is a request,
`GET /swagger.json` describes it, `/healthz` and `/readyz` tell whether it lives and is ready, `/metrics` is for
Prometheus. `uvicorn app:app` with options of your own does the same.

| file | what it is |
|---|---|
| `{contents.code}/` | the scoring script `{contents.entry_script}` and what lies beside it |
| `server/`, `app.py`, `server.json` | the server and its settings |
| `kit/` | names of `azureml` that scripts import |
| `requirements.lock` | every package, with its hashes |

Models:

{models}

Keys: write `{{"primary": "...", "secondary": "..."}}` to `keys.json` and `"keys_file": "keys.json"` into `server.json`;
requests then need `Authorization: Bearer <key>`.
{_local(contents)}"""


def _local(contents: Contents) -> str:
    if not contents.local:
        return ""
    listed = "\n".join(f"- {each}" for each in contents.local)
    return f"""
These packages came from a folder of the machine the package was made on. Where pip does not find them, give it such a
folder with `--find-links`:

{listed}
"""
