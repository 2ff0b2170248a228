"""The lock: the exact release of every package, resolved once when the environment is built."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from trainmaster.environments.hints import hint_for
from trainmaster.environments.prefix import CONDA_LOCK
from trainmaster.environments.prefix import LOCK_NAME as LOCK_NAME
from trainmaster.environments.resolver_process import ResolverProcess
from trainmaster.environments.sources import mask_passwords, uv_options, with_options
from trainmaster.environments.tools import Started, Tools
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.job_spec import EnvironmentSpec

ALLOWED_NAME = "constraints.txt"

Question = tuple[tuple[str, ...], str, dict[str, str]]
"""One call of uv: its command line, its standard input, its variables."""

_SHOWN_LINES = 20
_GIVEN = "/dev/stdin"

_PIN = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(?:==(?P<version>[^\s;\\]+)|\s+@\s+(?P<place>\S+))")
_SOURCE = re.compile(r"\s+# from (?P<source>\S+)")
_TITLE = re.compile(r"# Python (?P<python>\d+\.\d+) on ")
_CONDA = "# conda: "
_COMPILED = ("horovod==",)
"""Lines of a lock that the last stage of a build adds."""
_AGE = re.compile(r"(?P<count>\d+)\s*(?P<unit>hour|day|week)s?", re.IGNORECASE)


@dataclass(frozen=True)
class Pin:
    """One package of a lock."""

    name: str
    version: str
    """Empty for a package given by its URL."""
    source: str = ""
    """The index or folder it comes from, or its URL."""


@dataclass(frozen=True)
class Request:
    """The requirements to resolve, and options of `uv pip compile` in addition to the user's sources."""

    requirements: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sources:
    """Where packages come from, including options in the specification. They may contain passwords."""

    options: tuple[str, ...]
    variables: Mapping[str, str]
    """All variables of the uv process."""

    @property
    def no_index(self) -> bool:
        return "--no-index" in self.options


def sources_of(spec: EnvironmentSpec, tools: Tools) -> Sources:
    """Combine pip's settings with the options among the packages, which take precedence."""
    lines = [line for line in spec.pip_packages if line.startswith("-")]
    merged, rest = with_options(tools.settings, lines)
    variables = tools.uv_environ_with(merged)
    own = with_options({}, lines)[0]
    if "index-url" in own:
        variables["UV_DEFAULT_INDEX"] = own["index-url"]
    return Sources((*uv_options(merged), *rest), variables)


def requirements_of(spec: EnvironmentSpec) -> tuple[str, ...]:
    """The packages without options."""
    return tuple(line for line in spec.pip_packages if not line.startswith("-"))


def question(request: Request, python: str, sources: Sources, allowed: Path | None = None) -> Question:
    """The uv call that resolves `request`; `allowed` is a file with its constraints."""
    command = ["pip", "compile", "--python", python, "--no-header", "--emit-index-annotation"]
    command += ["--constraint", str(allowed)] if allowed else []
    command += [*sources.options, *request.options, _GIVEN]
    return tuple(Tools.uv_command(command)), "\n".join(request.requirements) + "\n", dict(sources.variables)


def resolve(asking: ResolverProcess, show: bool = False) -> tuple[str | None, str]:
    """Return the lock's text, or None and the resolver's error; `show` prints the output live."""
    try:
        code, said = Started(asking.lines, asking.wait).finish(show)
        if code:
            return None, "".join(said)
        # uv mentions its input files by path; replace the paths by words that users understand.
        text = re.sub(r"-r \S*stdin", "what was asked for", asking.answer())
        return re.sub(rf"-c \S*{ALLOWED_NAME}", "what is allowed", text), ""
    finally:
        asking.close()


def install(text: str, folder: Path, sources: Sources, tools: Tools) -> None:
    """Install exactly the packages of the lock; packages in uv's cache are linked without network access."""
    work = folder / ".installing"
    # This text may contain passwords in URLs; the stored lock does not.
    work.write_text(exactly(text))
    command = ["pip", "install", "--python", f"{folder}/bin/python", "--no-deps", *sources.options, "-r", str(work)]
    try:
        print("$ uv pip install (exactly the lock)", flush=True)
        code, said = tools.attempt(tools.uv_command([*command, "--offline", "--no-build"]), sources.variables)
        if code:
            # Something must be downloaded or compiled. That takes long, so show the output.
            code, said = tools.attempt(tools.uv_command(command), sources.variables, show=True)
        else:
            print("".join(said), end="", flush=True)
    finally:
        work.unlink(missing_ok=True)
    if code:
        raise failure("installed", "".join(said))


def only(text: str, names: Collection[str]) -> str:
    r"""Keep only these packages of a lock.

    >>> only("numpy==2.4.6\n    # via torchvision\ntorchvision==0.28.0\n", ["torchvision"])
    'torchvision==0.28.0\n'
    """
    found = [(_PIN.match(line), line) for line in text.splitlines()]
    return "".join(f"{line}\n" for pin, line in found if pin and _normal(pin["name"]) in names)


def fetch(text: str, folder: Path, python: str, sources: Sources, tools: Tools) -> bool:
    """Unpack the packages of a lock for `python` into `folder`; return whether that worked."""
    work = folder.with_name(f"{folder.name}.txt")
    work.write_text(exactly(text))
    command = ["pip", "install", "--python", python, "--target", str(folder), "--no-deps", *sources.options]
    command += ["-r", str(work)]
    for more in (["--offline"], []):
        code, _ = tools.attempt(tools.uv_command([*command, *more]), sources.variables)
        if not code:
            return True
    return False


def exactly(text: str) -> str:
    """Turn the lock into requirements that no other build of the same release satisfies.

    >>> exactly("torch==2.13.0\\n    # from https://pypi.org/simple\\n")
    'torch===2.13.0\\n    # from https://pypi.org/simple\\n'
    """
    return re.sub(r"(?m)^([A-Za-z0-9][^\s=]*)==(?!=)", r"\1===", text)


def failure(what: str, said: str) -> EnvironmentException:
    """The error of a build, with the tool's output as the cause."""
    return EnvironmentException(
        f"the environment could not be built: its packages cannot be {what}",
        cause="\n".join(_shorten(said.strip().splitlines())),
        hint=hint_for(said),
    )


def _shorten(lines: list[str]) -> list[str]:
    """Keep the output from the first error on: its beginning says what failed, its end why.

    >>> _shorten(["Resolved 5 packages", "error: Failed to build `a==1`", "cause"])
    ['error: Failed to build `a==1`', 'cause']
    """
    begin = next((number for number, line in enumerate(lines) if line.startswith("error:")), 0)
    told = lines[begin:]
    return told if len(told) <= _SHOWN_LINES else [*told[:3], "...", *told[4 - _SHOWN_LINES :]]


def pins(text: str) -> list[Pin]:
    """List the packages of a lock.

    >>> pins("numpy==2.4.6\\n    # via pandas\\n    # from https://pypi.org/simple\\n")
    [Pin(name='numpy', version='2.4.6', source='https://pypi.org/simple')]
    """
    found: list[Pin] = []
    for line in text.splitlines():
        pin, source = _PIN.match(line), _SOURCE.match(line)
        if pin:
            found.append(Pin(_normal(pin["name"]), pin["version"] or "", mask_passwords(pin["place"] or "")))
        elif source and found:
            found[-1] = Pin(found[-1].name, found[-1].version, mask_passwords(source["source"]))
    return found


def write(folder: Path, text: str, title: str) -> None:
    """Store the lock in the environment, without passwords."""
    day = time.strftime("%Y-%m-%d", time.gmtime())
    (folder / LOCK_NAME).write_text(f"# {title}\n# resolved on {day}\n{_conda_packages(folder)}{mask_passwords(text)}")


def _conda_packages(folder: Path) -> str:
    """The conda packages of an earlier stage, as comments."""
    try:
        lines = (folder / CONDA_LOCK).read_text().splitlines()
    except FileNotFoundError:
        return ""
    return "".join(f"{_CONDA}{line}\n" for line in lines if "://" in line)


def write_again(folder: Path, text: str) -> None:
    """Store the lock of an earlier build, which `restore` has read."""
    (folder / LOCK_NAME).write_text(text)


def restore(spec: EnvironmentSpec) -> tuple[str, str, tuple[str, ...]]:
    """From the lock of an earlier build: the lock to store again, what pip installs, and the exact conda packages.

    Passwords are not in a lock. Packages given by an address with one are taken from what was asked for.
    """
    kept = "".join(f"{line}\n" for line in spec.lock.splitlines() if not line.startswith(_COMPILED))
    asked = {_normal(pin["name"]): line for line in requirements_of(spec) if (pin := _PIN.match(line)) and pin["place"]}
    lines = []
    for line in kept.splitlines():
        pin = _PIN.match(line)
        masked = pin is not None and pin["place"] is not None and "***" in pin["place"]
        lines.append(asked.get(_normal(pin["name"]), line) if pin is not None and masked else line)
    text = "".join(f"{line}\n" for line in lines if not line.startswith("#"))
    conda = [line.removeprefix(_CONDA) for line in kept.splitlines() if line.startswith(_CONDA)]
    return kept, text, tuple(map(exact_conda_package, conda))


def exact_conda_package(address: str) -> str:
    """The name, release and build of a conda package, by its address in a lock.

    >>> exact_conda_package("https://conda.example/linux-64/numpy-base-1.26.4-py311_0.conda#sha256:ab12")
    'numpy-base 1.26.4 py311_0'
    """
    file = address.partition("#")[0].rpartition("/")[2]
    return " ".join(file.removesuffix(".conda").removesuffix(".tar.bz2").rsplit("-", 2))


def python_of(text: str) -> str:
    """The Python that a lock is for, such as 3.11; empty if it does not say so.

    >>> python_of("# Python 3.11 on x86_64\\n# resolved on 2026-11-17\\n")
    '3.11'
    """
    found = _TITLE.match(text)
    return found["python"] if found else ""


def append(folder: Path, lines: Iterable[str]) -> None:
    """Append what a later stage installed, such as `horovod==0.28.1`."""
    with open(folder / LOCK_NAME, "a") as file:
        file.writelines(f"{line}\n" for line in lines)


def cut_off(given: str, now: datetime) -> str:
    """Convert `exclude_newer` to a date for uv. It is a date, a time, or an age before the build (`7 days`).

    >>> cut_off("7 days", datetime(2026, 11, 15, tzinfo=UTC)), cut_off("2026-01-31", datetime(2026, 11, 15, tzinfo=UTC))
    ('2026-11-08T00:00:00Z', '2026-01-31')
    """
    text = given.strip()
    age = _AGE.fullmatch(text)
    if age:
        unit = {"hour": "hours", "day": "days", "week": "weeks"}[age["unit"].lower()]
        return (now.astimezone(UTC) - timedelta(**{unit: int(age["count"])})).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise EnvironmentException(
            f"exclude_newer must be a date such as '2026-01-31' or an age such as '7 days', not {given!r}"
        ) from None
    return text


def title_of(python: str, cut: str, machine: str) -> str:
    """The first line of a lock."""
    return f"Python {python} on {machine}" + (f", no release after {cut}" if cut else "")


def list_installed(folder: Path) -> Sequence[str]:
    """List the packages that an earlier stage (conda) installed, as constraints."""
    found = []
    for info in distributions(folder):
        name, _, version = info.name.removesuffix(".dist-info").rpartition("-")
        found.append(f"{name}=={version}")
    return found


def distributions(folder: Path) -> list[Path]:
    """List the `.dist-info` folders of the packages in an environment."""
    return sorted(folder.glob("lib/python3.*/site-packages/*.dist-info"))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
