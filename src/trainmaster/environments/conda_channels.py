"""The channels of conda packages: from the environment, a variable, or the user's .condarc."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.job_spec import EnvironmentSpec

SETTING = "TRAINMASTER_CONDA_CHANNELS"
DEFAULT = ("conda-forge",)
ALIAS = "https://conda.anaconda.org/"
# The channels that conda calls "defaults".
_DEFAULTS = ("https://repo.anaconda.com/pkgs/main", "https://repo.anaconda.com/pkgs/r")


def channels(spec: EnvironmentSpec, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The URLs of the channels, highest priority first."""
    settings = _settings(condarc_files(environ))
    configured = _split(environ.get(SETTING, "")) or _texts(settings.get("channels"))
    chosen = spec.conda_channels or configured or DEFAULT
    defaults = _texts(settings.get("default_channels")) or list(_DEFAULTS)
    alias = str(settings.get("channel_alias") or ALIAS)
    expanded = [each for channel in chosen for each in (defaults if channel == "defaults" else [channel])]
    return tuple(dict.fromkeys(address(channel, alias, environ) for channel in expanded))


def address(channel: str, alias: str, environ: Mapping[str, str]) -> str:
    """The URL of a channel given by name, URL or folder.

    >>> address("conda-forge", ALIAS, {}), address("/srv/channel", ALIAS, {})
    ('https://conda.anaconda.org/conda-forge', 'file:///srv/channel')
    """
    text = channel.strip().rstrip("/")
    if "://" in text:
        return text
    if text.startswith("~/"):
        text = environ.get("HOME", "~") + text[1:]
    if text.startswith("/"):
        return Path(text).as_uri()
    if not text or text.startswith("."):
        raise EnvironmentException(
            f"conda channel {channel!r} is neither a name nor a URL",
            hint="Use a name such as conda-forge, a URL, or the absolute path of a folder.",
        )
    return f"{alias.rstrip('/')}/{text}"


def without_secrets(url: str) -> str:
    """The URL without passwords and tokens, so that it can be shown and stored.

    >>> without_secrets("https://me:secret@host/t/tk-123/channel")
    'https://host/channel'
    """
    return re.sub(r"/t/[^/]+", "", re.sub(r"(?<=://)[^/@]*@", "", url))


def condarc_files(environ: Mapping[str, str]) -> list[Path]:
    """conda's configuration files; later files override earlier ones."""
    home = Path(environ.get("HOME", "~")).expanduser()
    configuration = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [Path("/etc/conda/.condarc"), configuration / "conda/.condarc", home / ".conda/.condarc", home / ".condarc"]
    return [*files, Path(environ["CONDARC"])] if environ.get("CONDARC") else files


def _settings(files: Iterable[Path]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for file in files:
        try:
            content = yaml.safe_load(file.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise EnvironmentException(
                f"conda's settings in {file} cannot be read",
                cause=str(error),
                hint=f"Fix the file, or set the channels in {SETTING}.",
            ) from None
        found.update(content if isinstance(content, dict) else {})
    return found


def _texts(value: Any) -> list[str]:
    return [os.path.expandvars(str(each)) for each in value] if isinstance(value, list) else []


def _split(text: str) -> list[str]:
    return text.replace(",", " ").split()
