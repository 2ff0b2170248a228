"""Real clients of MLflow, with nothing but an address and a token."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.mlflow_releases import RELEASES, address_of, run_client
from tests.server_process import ServerProcess

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    try:
        made.create_workspace("team")
        yield made
    finally:
        made.end()


@pytest.mark.parametrize("release", RELEASES)
def test_an_experiment_is_created_and_found(server: ServerProcess, release: str) -> None:
    script = """
import mlflow
made = mlflow.create_experiment("of " + mlflow.__version__)
found = mlflow.get_experiment_by_name("of " + mlflow.__version__)
assert found.experiment_id == made, (made, found)
assert mlflow.get_experiment_by_name("no such") is None
print(found.name)
"""
    assert run_client(script, address_of(server, "team"), server.token, release) == f"of {release}\n"
    # The only workspace of a server needs no name, and the token may be a password.
    inside = f"http://anybody:{server.token}@127.0.0.1:{server.port}"
    assert run_client("import mlflow; print(mlflow.get_experiment_by_name('no such'))", inside, "", release) == "None\n"
