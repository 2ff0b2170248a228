"""`trainmaster server init --settings`: it may be repeated at each start of a container."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from trainmaster.job.errors import UserErrorException
from trainmaster.server.command import init
from trainmaster.server.identity.service import open_identity
from trainmaster.server.settings import Root, read_settings


def prepare(folder: Path, **settings: object) -> Root:
    file = folder / "given.json"
    file.write_text(json.dumps(settings))
    root = folder / "root"
    options = {"root": str(root), "database": None, "administrator": "admin", "json": True, "settings": str(file)}
    assert init(Namespace(**options)) == 0
    return Root(root)


def test_a_server_is_created_and_later_gets_other_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = prepare(tmp_path, hosts=["first"], port=1234)
    assert json.loads(capsys.readouterr().out) == {"root": str(root.path), "token": None}
    assert read_settings(root).port == 1234
    prepare(tmp_path, hosts=["second"])
    assert read_settings(root).hosts == ("second",) and read_settings(root).port == 8765


def test_the_administrator_is_added_once_and_gets_no_token(tmp_path: Path) -> None:
    for _ in range(2):
        root = prepare(tmp_path)
    identity = open_identity(root.path)
    try:
        assert [user.name for user in identity.users.list()] == ["admin"]
        assert identity.tokens.list() == []
    finally:
        identity.close()


def test_a_wrong_file_changes_nothing(tmp_path: Path) -> None:
    root = prepare(tmp_path, port=1234)
    with pytest.raises(UserErrorException, match=r"given\.json cannot be read"):
        prepare(tmp_path, prot=1)
    assert read_settings(root).port == 1234
