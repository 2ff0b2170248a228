"""The manifest lists the contents of a snapshot. The digest of its text is the snapshot's id."""

from __future__ import annotations

import os
from collections.abc import Iterable
from json.encoder import encode_basestring_ascii

from blake3 import blake3

from trainmaster.snapshots.tree import LINK, PROGRAM, Folder

MANIFEST_VERSION = 1


def manifest_path(workspace: str, snapshot_id: str) -> str:
    """The path of a snapshot's manifest."""
    return f"{workspace}/snapshots/{snapshot_id}.json"


def manifest_id(text: bytes) -> str:
    """The id of the snapshot with this manifest."""
    return blake3(text).hexdigest()


def dump_manifest(folders: Iterable[Folder]) -> bytes:
    """Write the manifest: sorted, one entry per line, in ASCII, so that names that are not UTF-8 are kept."""
    files: list[tuple[str, str]] = []
    links: list[tuple[str, str]] = []
    empty: list[str] = []
    # Entries are formatted by hand: the JSON encoder takes three times as long for a large tree.
    for folder in folders:
        prefix = os.fsdecode(folder.path + b"/") if folder.path else ""
        for name, signature, content in zip(folder.names, folder.signatures, folder.contents, strict=True):
            path = prefix + os.fsdecode(name)
            quoted = encode_basestring_ascii(path)
            if content.startswith(LINK):
                target = encode_basestring_ascii(os.fsdecode(content[1:]))
                links.append((path, f'  {{"path": {quoted}, "target": {target}}}'))
                continue
            digest, executable = content[1:].decode(), "true" if content.startswith(PROGRAM) else "false"
            entry = f'"digest": "{digest}", "size": {signature[3]}, "executable": {executable}'
            files.append((path, f'  {{"path": {quoted}, {entry}}}'))
        if folder.kept and folder.path and not folder.names and not folder.subfolders:
            empty.append(prefix[:-1])
    quoted_folders = [f"  {encode_basestring_ascii(path)}" for path in sorted(empty)]
    sections = (("files", _sort_texts(files)), ("links", _sort_texts(links)), ("folders", quoted_folders))
    body = ",\n".join(f' "{name}": [{_lines(lines)}]' for name, lines in sections)
    return f'{{"version": {MANIFEST_VERSION},\n{body}}}\n'.encode("ascii")


def _sort_texts(entries: list[tuple[str, str]]) -> list[str]:
    entries.sort()
    return [text for _, text in entries]


def _lines(lines: list[str]) -> str:
    return "\n" + ",\n".join(lines) if lines else ""
