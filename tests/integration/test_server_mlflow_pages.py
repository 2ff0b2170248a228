"""MLflow's own pages on our server, in a real browser."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.conftest import PATIENCE
from tests.mlflow_releases import address_of, find_python, run_client
from tests.server_people import add_user, grant
from tests.server_process import ServerProcess
from tests.studio import open_browser

pytestmark = pytest.mark.timeout(600)

_LOG = """
import mlflow
mlflow.set_experiment("spiral")
for number in range(3):
    with mlflow.start_run(run_name=f"trial {number}") as run:
        mlflow.log_params({"lr": number / 10})
        for step in range(20):
            mlflow.log_metric("loss", 1 / (step + 1 + number), step=step)
        mlflow.log_text("all went well", "notes.txt")
print("made", run.info.experiment_id, run.info.run_id)
"""


def find_package() -> Path:
    """The folder of the package `mlflow`."""
    return next((find_python().parent.parent / "lib").glob("python*")) / "site-packages" / "mlflow"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path_factory.mktemp("server") / "root", "--mlflow-ui", str(find_package()))
    try:
        made.create_workspace("team")
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def page(server: ServerProcess) -> Iterator[Page]:
    token = add_user(server, "ann")
    grant(server, "team", "ann", "contributor")
    with open_browser() as browser:
        context = browser.new_context(viewport={"width": 1500, "height": 900}, base_url=server.url)
        page = context.new_page()
        page.goto("/mlflow/team/")
        # Whoever is not signed in is led there and back.
        assert "/login?next=%2Fmlflow%2Fteam%2F" in page.url
        headers = {"Authorization": f"Bearer {token}", "Origin": server.url}
        assert context.request.post("/login/session", headers=headers).ok
        yield page
        context.close()


def test_runs_charts_and_artifacts_are_shown(server: ServerProcess, page: Page) -> None:
    experiment, run = run_client(_LOG, address_of(server, "team"), server.token).splitlines()[-1].split()[1:]
    top, refused = "/mlflow/team", []
    page.on("console", lambda message: refused.append(message.text) if "Security Policy" in message.text else None)
    page.goto(f"{top}/#/experiments/{experiment}/runs")
    for number in range(3):
        expect(page.get_by_role("link", name=f"trial {number}").first).to_be_visible()
    page.goto(f"{top}/#/experiments/{experiment}/runs/{run}")
    expect(page.get_by_text("trial 2").first).to_be_visible()
    expect(page.get_by_text("loss").first).to_be_visible()
    expect(page.get_by_text(run).first).to_be_visible()
    with page.expect_response(re.compile("get-history-bulk-interval")) as asked:
        page.goto(f"{top}/#/experiments/{experiment}/runs/{run}/model-metrics")
    assert len(asked.value.json()["metrics"]) == 20
    expect(page.locator(".js-plotly-plot, .plotly").first).to_be_visible()
    page.goto(f"{top}/#/experiments/{experiment}/runs/{run}/artifacts")
    page.get_by_text("notes.txt").first.click()
    expect(page.get_by_text("all went well").first).to_be_visible()
    assert refused == []
    # What the pages would change is refused, with the reason.
    name = page.evaluate(
        """async (run) => {
        const token = document.cookie.split("X-CSRF-Token=")[1].split(";")[0];
        const answer = await fetch("ajax-api/2.0/mlflow/runs/set-tag", {
            method: "POST",
            headers: {"Content-Type": "application/json", "X-CSRF-Token": token},
            body: JSON.stringify({run_id: run, key: "by", value: "a page"}),
        });
        return (await answer.json()).message;
    }""",
        run,
    )
    assert "pages cannot change anything on this server" in name


def test_the_pages_need_a_role_and_give_nothing_else(server: ServerProcess) -> None:
    stranger = add_user(server, "stranger")
    assert server.request("GET", "/mlflow/team/", token=stranger).status == 403
    index = server.request("GET", "/mlflow/team/")
    assert index.status == 200 and "frame-ancestors 'self'" in index.headers["content-security-policy"]
    script = re.search(rb'src="(static-files/[^"]+\.js)"', index.body)[1].decode()
    found = server.request("GET", f"/mlflow/team/{script}")
    assert found.status == 200 and "javascript" in found.headers["content-type"]
    assert server.request("GET", f"/mlflow/team/{script}", token="").status == 401
    for name in ("../../__init__.py", "%2e%2e/%2e%2e/__init__.py", "..%2f..%2f__init__.py", "/etc/passwd", "none.js"):
        assert server.request("GET", f"/mlflow/team/static-files/{name}").status in (400, 404), name
    # The looser policy is for these pages only.
    assert "unsafe" not in server.request("GET", "/").headers["content-security-policy"]
    assert "unsafe-eval" not in server.request("GET", "/login").headers["content-security-policy"]


def test_without_the_package_the_server_says_what_is_missing(server: ServerProcess, tmp_path: Path) -> None:
    program = str(Path(sys.executable).with_name("trainmaster"))
    root = str(tmp_path / "root")
    subprocess.run([program, "server", "init", "--root", root], check=True, capture_output=True)
    command = [program, "server", "run", "--root", root, "--port", "0", "--mlflow-ui", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode != 0
    assert "MLflow's pages were not found" in done.stderr and "pip install mlflow" in done.stderr
