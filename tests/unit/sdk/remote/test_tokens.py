"""Tokens: for one server each, and for no other."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from trainmaster.errors import AuthenticationException, UserErrorException

from trainmaster.sdk.backend.remote.address import parse_server, split_workspace
from trainmaster.sdk.backend.remote.tokens import find_token, forget_token, keep_token, tokens_file

SERVER = parse_server("https://gpu.example.org")


@pytest.fixture(autouse=True)
def own_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("TRAINMASTER_SERVER", "TRAINMASTER_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "config"


def test_tokens_are_readable_by_their_owner_only(own_config: Path) -> None:
    keep_token(SERVER, "tm_one")
    keep_token(parse_server("https://other.example.org"), "tm_two")
    assert tokens_file() == own_config / "trainmaster" / "tokens.json"
    assert stat.S_IMODE(tokens_file().stat().st_mode) == 0o600
    assert stat.S_IMODE(tokens_file().parent.stat().st_mode) == 0o700
    assert find_token(SERVER) == "tm_one"
    assert forget_token(SERVER) and not forget_token(SERVER)
    with pytest.raises(AuthenticationException, match=r"trainmaster login https://gpu.example.org"):
        find_token(SERVER)
    assert list(json.loads(tokens_file().read_text())["tokens"]) == ["https://other.example.org"]


def test_the_token_of_the_environment_is_for_its_own_server_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMASTER_TOKEN", "tm_mine")
    with pytest.raises(AuthenticationException, match="TRAINMASTER_SERVER"):
        find_token(SERVER)
    monkeypatch.setenv("TRAINMASTER_SERVER", "https://GPU.example.org:443/")
    assert find_token(SERVER) == "tm_mine"
    with pytest.raises(AuthenticationException, match=r"is not used for https://evil.example.org"):
        find_token(parse_server("https://evil.example.org"))


def test_a_file_that_others_can_read_is_mentioned(capsys: pytest.CaptureFixture[str]) -> None:
    keep_token(SERVER, "tm_one")
    tokens_file().chmod(0o644)
    assert find_token(SERVER) == "tm_one"
    assert "chmod 600" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        "gpu.example.org",
        "ftp://gpu.example.org",
        "https://",
        "https://ada:tm_x@h",
        "https://h?token=tm_x",
        "https://h:99999",
    ],
)
def test_what_is_not_an_address_is_refused_without_its_secrets(text: str) -> None:
    with pytest.raises(UserErrorException, match="cannot be the address") as raised:
        parse_server(text)
    assert "tm_x" not in str(raised.value)


def test_the_address_of_a_workspace_has_its_name() -> None:
    server, name = split_workspace("https://example.org:8443/behind/a-proxy/workspaces/my%20team/runs/7")
    assert (str(server), name) == ("https://example.org:8443/behind/a-proxy", "my team")
