"""Pages of the site that are not in docs/: documents from the top of the project, and the help of the commands."""

from __future__ import annotations

import contextlib
import io
import os
import posixpath
import re
import textwrap
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from trainmaster.cli.commands import SECTIONS
from trainmaster.cli.parsing import parse

PROJECT = Path(__file__).parents[2]
COMMANDS = "<!-- commands -->"
# As wide as code is on the pages.
WIDTH = 88

# Documents outside of docs/ that are pages of the site.
_PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Adds the documents that lie at the top of the project."""
    for source, page in _PAGES.items():
        if page != "index.md":
            files.append(File.generated(config, page, content=(PROJECT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrites links for the site, and replaces the marker of commands with their help."""
    source = next((source for source, name in _PAGES.items() if name == page.file.src_uri != "index.md"), None)
    markdown = fit_links(markdown, source or f"docs/{page.file.src_uri}", page.file.src_uri)
    return markdown.replace(COMMANDS, commands()) if COMMANDS in markdown else markdown


def fit_links(markdown: str, source: str, page: str) -> str:
    """Links of the document `source` as links of `page`; one to a file that the site lacks becomes its path.

    >>> fit_links("[map](docs/internals/engines.md#a)", "CONTRIBUTING.md", "contributing.md")
    '[map](internals/engines.md#a)'
    >>> fit_links("see [examples](../../examples/README.md)", "docs/guide/data.md", "guide/data.md")
    'see `examples/README.md`'
    """

    def fit(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if "://" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        uri = _PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        if uri is None:
            return f"`{path}`"
        return f"[{text}]({posixpath.relpath(uri, posixpath.dirname(page) or '.')}{anchor})"

    return _LINK.sub(fit, markdown)


def commands() -> str:
    """The help of every command, as its argument parser prints it."""
    parts = []
    for title, section in SECTIONS:
        parts.append(f"## {title}")
        parts += [f"### trainmaster {each.name}\n\n```text\n{help_of(each.name)}\n```" for each in section]
    return "\n\n".join(parts)


def help_of(name: str) -> str:
    """What `trainmaster NAME --help` prints."""
    printed = io.StringIO()
    os.environ["COLUMNS"] = str(WIDTH)
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        parse([*name.split(), "--help"])
    return "\n\n".join(wrap(part) for part in printed.getvalue().strip().split("\n\n"))


def wrap(part: str) -> str:
    """Breaks the long lines of a paragraph; options and examples, whose lines are indented, stay as they are.

    >>> wrap("a" * 60 + " " + "b" * 60 + "\\nc").split("\\n") == ["a" * 60, "b" * 60 + " c"]
    True
    """
    lines = part.splitlines()
    is_prose = not any(line.startswith(" ") for line in lines) and any(len(line) > WIDTH for line in lines)
    return textwrap.fill(" ".join(lines), WIDTH) if is_prose else part
