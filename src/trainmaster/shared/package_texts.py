"""The generated files of a package: its start script, its Dockerfile, and its README."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PORT = 5001
"""The port inside an image, the same as v1's."""
PIP, CERTIFICATES = "pip", "pip-cert"
"""Build secrets: a pip.conf, and the certificates to trust. Neither becomes part of the image."""
CODE = "code"
"""The working folder of the script."""
MODELS = f"{CODE}/azureml-models"
"""Where `Model.get_model_path` finds models, relative to the working folder."""

APP = '''"""The scoring service: `uvicorn app:app`, anywhere the packages of requirements.lock are."""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# The names of azureml that work without a workspace.
sys.path[:0] = [HERE, os.path.join(HERE, "kit")]

with open(os.path.join(HERE, "server.json"), encoding="utf-8") as file:
    for name, value in json.load(file)["variables"].items():
        os.environ.setdefault(name, value)

from server.application import from_file  # noqa: E402

app = from_file(os.path.join(HERE, "server.json"))
'''

START = """#!/bin/sh
# Serves on the address HOST:PORT. Arguments are passed to uvicorn.
cd "$(dirname "$0")" && exec uvicorn app:app --host "${HOST:-127.0.0.1}" --port "${PORT:-5001}" "$@"
"""

IGNORED = "__pycache__\n*.pyc\n.venv\n"


@dataclass(frozen=True)
class Contents:
    """The facts about a package that its texts mention."""

    name: str
    entry_script: str
    models: tuple[str, ...]
    python: str
    """Major.minor."""
    variables: Mapping[str, str] = field(default_factory=dict)
    local: tuple[str, ...] = ()
    """Packages that came from a folder of the machine on which the package was made."""
    folder_name: str = ""
    """The source folder below `code/`; empty if the script is in `code/` itself."""

    @property
    def code(self) -> str:
        """The source folder, below the package."""
        return f"{CODE}/{self.folder_name}" if self.folder_name else CODE


def model_dir(models: Sequence[str]) -> str:
    """The value of AZUREML_MODEL_DIR by v1's rule, below the package: the folder of a single model, or of all models.

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
    """The README of the package."""
    models = "\n".join(f"- `{MODELS}/{each.replace(':', '/')}`" for each in contents.models) or "- none"
    return f"""# {contents.name}

A scoring service. It needs Python {contents.python} and the packages in `requirements.lock`, and nothing from the
machine on which it was made.

    python{contents.python} -m venv .venv
    .venv/bin/pip install --no-deps --require-hashes -r requirements.lock
    PATH=$PWD/.venv/bin:$PATH sh start.sh

or as an image: `docker build -t {contents.name} .` and `docker run -p {PORT}:{PORT} {contents.name}`. If pip needs
a package index of your own: `docker build --secret id={PIP},src=$HOME/.config/pip/pip.conf -t {contents.name} .`

It listens on `HOST:PORT` (default: 127.0.0.1:{PORT}). Send requests with `POST /score`; `GET /swagger.json` describes
them. `/healthz` and `/readyz` report whether it is alive and ready, and `/metrics` is for Prometheus. You can also
start it with `uvicorn app:app` and your own options.

| file | what it is |
|---|---|
| `{contents.code}/` | the scoring script `{contents.entry_script}` and the other files of its folder |
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
These packages came from a folder of the machine on which the package was made. If pip does not find them, give it a
folder that has them, with `--find-links`:

{listed}
"""
