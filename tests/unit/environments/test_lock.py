"""Locks and what they are made from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from trainmaster.environments import lock
from trainmaster.environments.hints import hint_for
from trainmaster.environments.sources import mask_passwords, source_variables, with_options
from trainmaster.environments.tools import Tools
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.job_spec import EnvironmentSpec

TEXT = """\
numpy==2.4.6
    # via
    #   what was asked for
    #   pandas
    # from https://me:secret@packages.example/simple
Torch_Vision==0.9+cpu ; python_version >= '3'
own @ https://me:secret@packages.example/own-1.0.whl
    # via what was asked for
"""


def test_pins() -> None:
    assert lock.pins(TEXT) == [
        lock.Pin("numpy", "2.4.6", "https://***@packages.example/simple"),
        lock.Pin("torch-vision", "0.9+cpu"),
        lock.Pin("own", "", "https://***@packages.example/own-1.0.whl"),
    ]


def test_the_lock_that_stays_has_no_passwords(tmp_path: Path) -> None:
    lock.write(tmp_path, TEXT, "Python 3.11")
    lock.append(tmp_path, ["horovod==0.28.1"])
    kept = (tmp_path / "environment.lock").read_text()
    assert "secret" not in kept
    assert kept.startswith("# Python 3.11\n# resolved on 2")
    assert lock.pins(kept)[-1] == lock.Pin("horovod", "0.28.1")


@pytest.mark.parametrize(
    ("given", "cut"),
    [
        ("2026-01-31", "2026-01-31"),
        ("2026-01-31T10:00:00Z", "2026-01-31T10:00:00Z"),
        ("7 days", "2026-11-08T12:00:00Z"),
        ("1 day", "2026-11-14T12:00:00Z"),
        (" 36 hours", "2026-11-14T00:00:00Z"),
        ("2 Weeks ", "2026-11-01T12:00:00Z"),
    ],
)
def test_cut_off(given: str, cut: str) -> None:
    now = datetime(2026, 11, 15, 14, tzinfo=timezone(timedelta(hours=2)))
    assert lock.cut_off(given, now) == cut


@pytest.mark.parametrize("given", ["soon", "7", "-7 days", "2026-13-01"])
def test_cut_off_that_is_none(given: str) -> None:
    with pytest.raises(EnvironmentException, match="'7 days'"):
        lock.cut_off(given, datetime.now(UTC))


@pytest.mark.parametrize(
    ("options", "settings", "rest"),
    [
        (["--index-url https://mine"], {"index-url": "https://mine", "find-links": "/wheels"}, []),
        (["--find-links /more"], {"index-url": "https://pip", "find-links": "/wheels /more"}, []),
        (["--extra-index-url https://a?b=c"], {"extra-index-url": "https://a?b=c"}, []),
        (["--pre", "--prefer-binary"], {"pre": "1"}, []),
        (["--no-binary numpy", "--no-deps"], {}, ["--no-binary", "numpy", "--no-deps"]),
    ],
)
def test_options_among_the_packages(options: list[str], settings: dict[str, str], rest: list[str]) -> None:
    given = {"index-url": "https://pip", "find-links": "/wheels"}
    assert with_options(given, options) == ({**given, **settings}, rest)


def test_an_index_of_the_specification_goes_before_pips() -> None:
    spec = EnvironmentSpec(pip_packages=("--index-url https://mine", "--extra-index-url https://more", "numpy"))
    sources = lock.sources_of(spec, Tools({"PIP_CONFIG_FILE": "/dev/null", "UV_DEFAULT_INDEX": "https://pip"}))
    assert sources.variables["UV_DEFAULT_INDEX"] == "https://mine"
    assert sources.variables["UV_INDEX"] == "https://more"
    assert sources.variables["UV_INDEX_STRATEGY"] == "unsafe-best-match"
    assert not sources.options
    assert lock.requirements_of(spec) == ("numpy",)


def test_what_conda_brought_is_kept(tmp_path: Path) -> None:
    for name in ("numpy-2.0.dist-info", "scikit_learn-1.5.dist-info", "numpy"):
        (tmp_path / "lib/python3.11/site-packages" / name).mkdir(parents=True)
    assert list(lock.list_installed(tmp_path)) == ["numpy==2.0", "scikit_learn==1.5"]


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("Because x was not found in the package registry", "spelling"),
        ("Because a and b are incompatible, your requirements are unsatisfiable", "relax"),
        ("Because there is no version of x==9 and you require x==9, ... are unsatisfiable", "do not have this release"),
        ("Because a depends on x==9 and there is no version of x==9, ... are unsatisfiable", "relax"),
        ("unavailable because the network was disabled", "UV_OFFLINE"),
        ("error sending request for url: operation timed out", "UV_HTTP_TIMEOUT"),
        ("Failed to fetch: HTTP status client error (401 Unauthorized)", "user and password in"),
        ("tcp connect error: Connection refused (os error 111)", "cannot be reached"),
        ("x==1 has no wheels with a matching Python ABI tag (e.g., `cp311`)", "python_version"),
        ("the current Python version (3.11.7) does not satisfy Python>=3.12", "python_version"),
        ("x has no wheels with a matching platform tag", "this machine"),
        ("failed to write: No space left on device (os error 28)", "Free disk space"),
        ("Failed to build `x==1.0`", "compiled"),
        ("something else", "names and versions"),
    ],
)
def test_hints(said: str, word: str) -> None:
    assert word in hint_for(said)


def test_masked() -> None:
    text = "a https://u:p@host/x b git+https://token@host/y@v1 c https://host/z@2"
    assert mask_passwords(text) == "a https://***@host/x b git+https://***@host/y@v1 c https://host/z@2"


def test_our_own_variables_travel_with_a_submit() -> None:
    given = {"TRAINMASTER_ENVIRONMENTS": "/e", "TRAINMASTER_ALLOW_CUDA": "1", "TRAINMASTER_HOME": "/h"}
    assert set(source_variables(given)) == {"TRAINMASTER_ENVIRONMENTS", "TRAINMASTER_ALLOW_CUDA"}
