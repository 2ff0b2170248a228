"""The documentation site: `make docs` builds it without a warning, complete, and independent of a network."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import trainmaster
from trainmaster.cli.commands import all_commands
from trainmaster.job import errors

PROJECT = Path(__file__).parents[2]
# Attributes by which a browser loads something; an `href` of `a` only leads there.
LOADING = {"src", "srcset", "data", "poster"}
NETWORK = re.compile(r"\s*(https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it, in another folder."""
    recipe = re.search(r"^docs: .*\n\t(.*)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    command = recipe[1].replace("$(BIN)/mkdocs", f"{sys.executable} -m mkdocs")
    place = tmp_path_factory.mktemp("built") / "site"
    built = subprocess.run(
        ["sh", "-c", f"{command} --site-dir {place}"],
        cwd=PROJECT,
        env={**os.environ, "PYTHONWARNINGS": "default"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert (built.returncode, built.stdout) == (0, ""), built.stdout + built.stderr
    return place


class Loaded(HTMLParser):
    """Collects the addresses that a browser loads together with a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        loading = LOADING | {"href"} if tag in ("link", "use", "image") else LOADING
        self.addresses += [value or "" for name, value in attrs if name in loading]


def test_every_public_name_has_an_entry(site: Path) -> None:
    text = "\n".join(page.read_text() for page in (site / "reference/api").glob("*.html"))
    assert [name for name in trainmaster.__all__ if f'id="trainmaster.{name}"' not in text] == []


def test_every_error_has_an_entry(site: Path) -> None:
    text = (site / "reference/errors.html").read_text()
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    assert [each for each in kinds if f'id="trainmaster.job.errors.{each.__name__}"' not in text] == []


def test_every_command_has_its_help(site: Path) -> None:
    text = (site / "reference/cli.html").read_text()
    assert [name for name in all_commands() if f">trainmaster {name}<" not in text] == []
    assert text.count("usage: trainmaster") == len(all_commands())


def test_nothing_is_loaded_from_a_network(site: Path) -> None:
    found = []
    for page in site.rglob("*.html"):
        loaded = Loaded()
        loaded.feed(page.read_text())
        found += [(page.name, each) for each in loaded.addresses if NETWORK.match(each)]
        # The theme fetches a program of its own for diagrams.
        assert 'class="mermaid"' not in page.read_text()
    for style in [*site.rglob("*.css"), *site.rglob("*.svg")]:
        addresses = re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')]*)", style.read_text())
        found += [(style.name, each) for each in addresses if NETWORK.match(each)]
    assert found == []


def test_search_works_on_files_without_a_server(site: Path) -> None:
    """The offline plugin writes the index as a script; the frame that replaces the worker is ours."""
    script = (site / "search/search_index.js").read_text()
    index = json.loads(script.removeprefix("var __index = "))
    assert any(entry["location"] == "guide/tutorial.html" for entry in index["docs"])
    assert 'src="assets/iframe-worker.js"' in (site / "index.html").read_text()
