"""Package sources: the user's pip configuration, translated for uv, which does not read it."""

from __future__ import annotations

import configparser
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

# pip's option, uv's option; each may have several values.
_OPTIONS = (
    ("find-links", "--find-links"),
    ("trusted-host", "--allow-insecure-host"),
    ("constraint", "--constraint"),
)
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
_YES = ("1", "true", "yes", "on")
# Our own variables: a folder of ready environments, the newest allowed date, and the permission to install CUDA.
OWN_VARIABLES = ("TRAINMASTER_ENVIRONMENTS", "TRAINMASTER_EXCLUDE_NEWER", "TRAINMASTER_ALLOW_CUDA")
# pip options in requirements files that correspond to settings.
_SETTING_OF = {
    "-i": "index-url",
    "--index-url": "index-url",
    "--pypi-url": "index-url",
    "--extra-index-url": "extra-index-url",
    "-f": "find-links",
    "--find-links": "find-links",
    "--trusted-host": "trusted-host",
}
_SWITCHES = {"--pre": "pre", "--no-index": "no-index"}
_SAYS_NOTHING = ("--prefer-binary", "--upgrade", "-U", "--user", "--quiet", "-q", "--no-warn-script-location")


def pip_settings(environ: Mapping[str, str], files: Iterable[Path] | None = None) -> dict[str, str]:
    """pip's settings from its configuration files and `PIP_*` variables; later ones win, as in pip."""
    by_section: dict[str, dict[str, str]] = {"global": {}, "install": {}}
    for file in config_files(environ) if files is None else files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            # pip refuses such a file itself. The other files still apply.
            continue
        for section, found in by_section.items():
            if parser.has_section(section):
                found.update({_name(key): value for key, value in parser.items(section)})
    # In pip the section takes precedence over the file: [install] in /etc overrides [global] of the user.
    settings = {**by_section["global"], **by_section["install"]}
    settings.update({_name(key[4:]): value for key, value in environ.items() if key.startswith("PIP_") and value})
    return settings


def config_files(environ: Mapping[str, str]) -> list[Path]:
    """The configuration files pip reads, in its order."""
    chosen = environ.get("PIP_CONFIG_FILE", "")
    if chosen == os.devnull:
        return []
    home = Path(environ.get("HOME", "~")).expanduser()
    configuration = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    found = [Path(folder) / "pip/pip.conf" for folder in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")]
    found.append(Path("/etc/pip.conf"))
    if not (chosen and os.path.exists(chosen)):
        found += [home / ".pip/pip.conf", configuration / "pip/pip.conf"]
    found.append(Path(sys.prefix) / "pip.conf")
    return [*found, Path(chosen)] if chosen else found


def uv_options(settings: Mapping[str, str]) -> list[str]:
    """uv's options for pip's settings. Index URLs may contain passwords, so `uv_variables` has them."""
    options: list[str] = []
    if settings.get("no-index", "").lower() in _YES:
        options.append("--no-index")
    if settings.get("pre", "").lower() in _YES:
        options += ["--prerelease", "allow"]
    for name, option in _OPTIONS:
        for part in settings.get(name, "").split():
            options += [option, part]
    return options


def with_options(settings: Mapping[str, str], options: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Merge pip options from a list of packages (`--name value`) into the settings; return the rest for uv.

    >>> with_options({"extra-index-url": "https://one"}, ["--extra-index-url https://two", "--only-binary :all:"])
    ({'extra-index-url': 'https://one https://two'}, ['--only-binary', ':all:'])
    """
    merged, rest = dict(settings), []
    for option in options:
        name, _, value = option.partition(" ")
        if name in _SWITCHES:
            merged[_SWITCHES[name]] = "1"
        elif name in _SETTING_OF:
            setting = _SETTING_OF[name]
            earlier = "" if setting == "index-url" else merged.get(setting, "")
            merged[setting] = f"{earlier} {value}".strip()
        elif name not in _SAYS_NOTHING:
            rest += [name, value] if value else [name]
    return merged, rest


def mask_passwords(text: str) -> str:
    """Remove users and passwords from the URLs in `text`.

    >>> mask_passwords("looked at https://me:secret@packages.example/simple")
    'looked at https://***@packages.example/simple'
    """
    return re.sub(r"(?<=://)[^/\s]+@", "***@", text)


def source_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that say where packages come from: they travel with a submit, but are never written down."""
    return {name: value for name, value in environ.items() if is_source_variable(name)}


def is_source_variable(name: str) -> bool:
    """Whether pip or uv reads this variable to find packages.

    >>> [is_source_variable(name) for name in ("PIP_INDEX_URL", "UV_INDEX", "https_proxy", "HOME")]
    [True, True, True, False]
    """
    return (
        name.startswith(("PIP_", "UV_", "TRAINMASTER_CONDA_", "RATTLER_"))
        or name in (*_CERTIFICATES, *OWN_VARIABLES)
        or name.lower().endswith("_proxy")
    )


def uv_variables(settings: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Variables for uv: pip's indexes and trusted certificates. Variables the user set for uv take precedence.

    They are not passed as options, because every user of the machine can read command lines.
    """
    variables = dict(environ)
    if settings.get("cert"):
        variables.setdefault("SSL_CERT_FILE", settings["cert"])
    index, more = settings.get("index-url", "").split(), settings.get("extra-index-url", "")
    if index and "UV_INDEX_URL" not in environ:
        variables.setdefault("UV_DEFAULT_INDEX", index[0])
    if more:
        variables["UV_INDEX"] = " ".join([*environ.get("UV_INDEX", "").split(), *more.split()])
        # pip searches all indexes for the best release; by default uv stops at the first index with the package.
        variables.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    return variables


def _name(key: str) -> str:
    return key.lower().replace("_", "-")
