"""How MLflow's clients sign in, and what they print while they work."""

from __future__ import annotations

import base64
import os
import re
import subprocess
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.conftest import PATIENCE
from tests.mlflow_releases import NEWEST, RELEASES, address_of, find_python, run_client
from tests.server_people import People, add_people, add_user, grant
from tests.server_process import ServerProcess
from tests.studio import open_browser

pytestmark = pytest.mark.timeout(600)

_FIND = "/mlflow/vision/api/2.0/mlflow/experiments/get-by-name?experiment_name=logged"
_CREATE = "/mlflow/vision/api/2.0/mlflow/experiments/create"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    server = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    try:
        yield add_people(server)
    finally:
        server.end()


@pytest.mark.parametrize("release", RELEASES)
def test_every_way_of_a_client(people: People, release: str) -> None:
    server, tokens = people.server, people.tokens
    script = f"""
import os, mlflow
from mlflow.exceptions import MlflowException

def attempt(**variables):
    for name in ("TOKEN", "USERNAME", "PASSWORD"):
        os.environ.pop("MLFLOW_TRACKING_" + name, None)
        if name in variables:
            os.environ["MLFLOW_TRACKING_" + name] = variables[name]
    mlflow.set_tracking_uri(variables.get("URI", {address_of(server, "vision")!r}))
    try:
        return mlflow.get_experiment_by_name("logged").name
    except MlflowException as error:
        return str(error)

print(attempt(TOKEN={tokens["reader"]!r}))
print(attempt(USERNAME="anybody", PASSWORD={tokens["reader"]!r}))
print(attempt(URI="http://anybody:{tokens["reader"]}@127.0.0.1:{server.port}/mlflow/vision"))
print(attempt())
print(attempt(TOKEN="tm_wrong"))
print(attempt(USERNAME="admin", PASSWORD="password1234"))
print(attempt(TOKEN={tokens["elsewhere"]!r}))
os.environ["MLFLOW_TRACKING_TOKEN"] = {tokens["reader"]!r}
try:
    mlflow.create_experiment("by a reader")
except MlflowException as error:
    print(error)
"""
    lines = run_client(script, "", "", release).splitlines()
    assert lines[:3] == ["logged"] * 3
    assert "you are not signed in" in lines[3]
    assert all("the token is not valid" in line for line in lines[4:6]), lines
    assert "you may not do this" in lines[6] and "PERMISSION_DENIED" in lines[7], lines


def test_basic_has_the_same_rights_as_bearer(people: People) -> None:
    def ask(who: str, method: str, path: str, body: object = None) -> int:
        given = base64.b64encode(f"{who}:{people.tokens[who]}".encode()).decode()
        return people.server.request(method, path, body, token="", headers={"Authorization": f"Basic {given}"}).status

    assert [ask(who, "GET", _FIND) for who in ("reader", "contributor", "elsewhere", "job")] == [200, 200, 403, 403]
    assert ask("reader", "POST", _CREATE, {"name": "no"}) == 403
    assert ask("contributor", "POST", _CREATE, {"name": "yes"}) == 200
    for given in ("", "!", base64.b64encode(b"no colon").decode(), base64.b64encode(b"\xff:\xff").decode()):
        answer = people.server.request("GET", _FIND, token="", headers={"Authorization": f"Basic {given}"})
        assert (answer.status, answer.json()["error_code"]) == (401, "UNAUTHENTICATED"), given
        # A browser that saw Basic here would ask for a password, also in the studio.
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_revoked_token_is_worth_nothing(people: People) -> None:
    token = add_user(people.server, "leaver")
    grant(people.server, "vision", "leaver", "reader")
    assert people.server.request("GET", _FIND, token=token).status == 200
    listed = people.server.request("GET", "/api/v1/tokens?user=leaver").json()["tokens"]
    assert people.server.request("DELETE", f"/api/v1/tokens/{listed[0]['id']}").status == 200
    assert people.server.request("GET", _FIND, token=token).status == 401
    assert people.server.request("GET", f"{_FIND}&x=1", token=token).status == 401


def test_other_sites_reach_nothing(people: People) -> None:
    """A page of another site cannot use the session of a browser, and a name that was rebound is not answered."""
    server = people.server
    signed_in = server.request(
        "POST", "/login/session", token=people.tokens["owner"], headers={"Origin": server.url, "Host": server.url[7:]}
    )
    assert signed_in.status == 200
    cookie = signed_in.headers["set-cookie"].split(";")[0]
    search = "/mlflow/vision/ajax-api/2.0/mlflow/experiments/search-datasets"
    own = {"Cookie": cookie, "Origin": server.url, "Content-Type": "application/json"}
    forged = [
        {"Cookie": cookie},
        own,
        {**own, "Origin": "http://evil.example", "X-CSRF-Token": signed_in.json()["csrf_token"]},
    ]
    for headers in forged:
        answer = server.request("POST", search, {"experiment_ids": ["1"]}, token="", headers=headers)
        assert (answer.status, answer.json()["error_code"]) == (403, "PERMISSION_DENIED"), headers
    allowed = {**own, "X-CSRF-Token": signed_in.json()["csrf_token"]}
    assert server.request("POST", search, {"experiment_ids": ["1"]}, token="", headers=allowed).status == 200
    # Even with the right token a session changes nothing: MLflow's pages only read.
    answer = server.request("POST", _CREATE, {"name": "by a page"}, token="", headers=allowed)
    assert answer.status == 403 and "pages cannot change anything" in answer.json()["message"]
    upload = "/mlflow/vision/api/2.0/mlflow-artifacts/artifacts/page.txt"
    assert server.request("PUT", upload, b"0", token="", headers=allowed).status == 403
    rebound = server.request("GET", _FIND, token=people.tokens["owner"], headers={"Host": "evil.example"})
    assert rebound.status == 421


def test_ordinary_work_is_quiet_and_its_links_lead_to_the_studio(people: People) -> None:
    script = """
import mlflow
mlflow.set_experiment("quiet")
with mlflow.start_run(run_name="silent") as run:
    mlflow.log_param("a", 1)
    mlflow.log_metric("loss", 0.5)
    mlflow.log_text("text", "notes.txt")
assert mlflow.artifacts.load_text(run.info.artifact_uri + "/notes.txt") == "text"
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    done = subprocess.run(
        [str(find_python(NEWEST)), "-c", script],
        env={
            **environment,
            "MLFLOW_TRACKING_URI": address_of(people.server, "vision"),
            "MLFLOW_TRACKING_TOKEN": people.tokens["contributor"],
            "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    noise = [line for line in done.stderr.splitlines() if "does not exist. Creating a new experiment" not in line]
    assert noise == []
    link = next(word for word in done.stdout.split() if "/runs/" in word)
    with open_browser() as browser:
        page = browser.new_page()
        # Two scripts lead further, each possibly while the page before is still loading.
        page.goto(link, wait_until="commit")
        expect(page).to_have_url(re.compile("/login"), timeout=PATIENCE * 1000)
        assert f"/w/vision/runs/{link.rpartition('/')[2]}" in page.url.replace("%2F", "/")
