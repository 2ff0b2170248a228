"""How pip finds its packages while an image is built."""

from __future__ import annotations

from pathlib import Path

from trainmaster.sdk.services.packaging import build_options, local_sources


def test_nothing_is_told_where_nothing_is_set(tmp_path: Path) -> None:
    assert build_options("docker", {"no-color": "1"}, tmp_path) == ["--network", "host"]
    assert build_options("podman", {}, tmp_path) == ["--network", "host", "--format", "docker"]
    assert list(tmp_path.iterdir()) == []


def test_settings_travel_as_secrets(tmp_path: Path) -> None:
    certificates = tmp_path / "own.crt"
    certificates.touch()
    settings = {"index-url": "https://me:secret@packages.example/simple", "cert": str(certificates), "user": "1"}
    options = build_options("docker", settings, tmp_path)
    assert options[2:] == [
        *("--secret", f"id=pip-cert,src={certificates}"),
        *("--secret", f"id=pip,src={tmp_path / 'pip.conf'}"),
    ]
    file = tmp_path / "pip.conf"
    assert file.read_text() == (
        "[global]\nindex-url = https://me:secret@packages.example/simple\ncert = /run/secrets/pip-cert\n"
    )
    assert file.stat().st_mode & 0o777 == 0o600


def test_folders_of_this_machine(tmp_path: Path) -> None:
    index, wheels = tmp_path / "index" / "simple", tmp_path / "my wheels"
    index.mkdir(parents=True)
    wheels.mkdir()
    settings = {
        "index-url": "https://packages.example/simple",
        "extra-index-url": f"file://{index}/\nfile:///not/there",
        "find-links": f"file://{tmp_path}/my%20wheels https://packages.example/links",
    }
    assert local_sources(settings) == [str(index.parent), str(wheels)]
    seen = [f"{place}:{place}:ro" for place in (index.parent, wheels)]
    options = build_options("podman", settings, tmp_path)
    assert [options[n + 1] for n, word in enumerate(options) if word == "--volume"] == seen
    assert "--volume" not in build_options("docker", settings, tmp_path)
