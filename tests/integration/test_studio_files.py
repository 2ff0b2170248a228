"""Files, code and environment of a run in the studio: previews of real files, hostile ones, and thousands of them."""

from __future__ import annotations

import io
import json
import os
import re
import struct
import zipfile
import zlib
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Locator, Page, expect
from tests.chaos.wheels import make_wheel
from tests.service_bench import onnx_times
from tests.studio import WORKSPACE, Studio, run_studio

from trainmaster import Estimator, Experiment, Keyvault, Workspace

SECRET = "hunter22-is-secret"
ATTACK = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"
NAME_ATTACK = "<img src=x onerror=alert(1)>.txt"
# What a page of an attacker tries; it lists what it could do.
PAGE_ATTACKS = """<h1>Title</h1><p id="done"></p><ul id="reached"></ul><script>
  const note = (text) => (document.getElementById('reached').innerHTML += `<li>${text}</li>`);
  const attempts = {
    'the page around it': () => { if (parent === self) throw 1; parent.document.title = 'hacked'; },
    'the window': () => { if (top === self) throw 1; top.location.href = '/hacked'; },
    'cookies': () => document.cookie,
    'storage': () => localStorage.length,
    'another window': () => { if (!window.open('/hacked')) throw 1; },
    'the API': () => fetch('/api/v1/me', {credentials: 'include'}),
    'the network': () => fetch('OUTSIDE/fetch', {mode: 'no-cors'}),
    'a picture': () => new Promise((good, bad) => { const it = new Image(); it.onload = it.onerror = (event) =>
      event.type === 'load' ? good() : bad(); it.src = 'OUTSIDE/picture'; }),
    'a script': () => new Promise((good, bad) => { const it = document.createElement('script'); it.onload = good;
      it.onerror = bad; it.src = 'OUTSIDE/script'; document.body.append(it); }),
  };
  (async () => {
    for (const [name, attempt] of Object.entries(attempts)) {
      try { await attempt(); note(name); } catch { /* It was refused. */ }
    }
    document.getElementById('done').textContent = 'all was tried';
  })();
</script>"""
MANY = 3000
FILES = 13
"""Besides the many."""
SCRIPT = '''"""Writes files when it is told to."""
import os, sys, time
from trainmaster import Run

run = Run.get_context()


def wait_for(part: str) -> None:
    while not os.path.exists(os.path.join(sys.argv[1], part)):
        time.sleep(0.01)


os.makedirs("outputs", exist_ok=True)
with open("outputs/first.txt", "w") as file:
    file.write("the first file\\n")
print("the key is", run.get_secret("token"), flush=True)
wait_for("second")
with open("outputs/second.txt", "w") as file:
    file.write("the second file\\n")
wait_for("end")
'''


class Job:
    """A real run in an environment of its own, which writes files when it is told to."""

    def __init__(self, run_id: str, gates: Path) -> None:
        self.id = run_id
        self._gates = gates

    def let(self, part: str) -> None:
        (self._gates / part).touch()


@pytest.fixture(scope="module")
def studio_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    wheels = tmp_path_factory.mktemp("wheels")
    make_wheel(wheels, "tinypackage")
    with pytest.MonkeyPatch.context() as patch:
        # Packages come from the wheel alone.
        for name in [each for each in os.environ if each.startswith(("PIP_", "UV_"))]:
            patch.delenv(name)
        patch.setenv("PIP_CONFIG_FILE", os.devnull)
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(wheels))
        with run_studio(tmp_path_factory.mktemp("studio") / "root") as studio:
            yield studio


@pytest.fixture(scope="module")
def workspace(studio_server: Studio) -> Workspace:
    found = Workspace(path=studio_server.server.root / "workspaces" / WORKSPACE)
    Keyvault(found).set_secret("token", SECRET)
    return found


@pytest.fixture(scope="module")
def job(workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Job:
    source, gates = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("gates")
    (source / "train.py").write_text(SCRIPT)
    (source / "data").mkdir()
    (source / "data" / "binary.dat").write_bytes(bytes(range(256)))
    (source / "data" / NAME_ATTACK).write_text(ATTACK)
    estimator = Estimator(
        str(source),
        entry_script="train.py",
        script_params={str(gates): ""},
        compute_target="local",
        pip_packages=["tinypackage"],
    )
    return Job(Experiment(workspace, "files").submit(estimator).id, gates)


class Outside:
    """Another site, which notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture(scope="module")
def outside() -> Iterator[Outside]:
    found = Outside()
    thread = Thread(target=found.server.serve_forever)
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


@pytest.fixture(scope="module")
def written(workspace: Workspace, outside: Outside) -> str:
    """A run that has ended, with files of all kinds; returns its id."""
    run = Experiment(workspace, "written").start_logging()
    folder = workspace.path / "runs" / run.id / "files" / "outputs"
    (folder / "many").mkdir(parents=True)
    for number in range(MANY):
        (folder / "many" / f"step_{number}.txt").touch()
    (folder / NAME_ATTACK).write_text(ATTACK)
    (folder / "long.txt").write_text("".join(f"line {number}\n" for number in range(100_000)))
    (folder / "table.csv").write_text(
        'x,"<b>y</b>"\n' + "".join(f'{number},=HYPERLINK("http://x")\n' for number in range(150))
    )
    pq.write_table(pa.table({"step": list(range(5000)), "loss": [ATTACK] * 5000}), folder / "table.parquet")
    (folder / "values.json").write_text('{"loss":[1,2],"html":"<b>"}')
    (folder / "picture.png").write_bytes(make_png())
    drawing = "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='40' onload=\"document.title='hacked'\">"
    (folder / "drawing.svg").write_text(
        f"{drawing}<script>document.title='hacked'</script><rect width='9' height='9'/></svg>"
    )
    (folder / "page.html").write_text(f"<h1>Title</h1>{ATTACK}")
    (folder / "attacks.html").write_text(PAGE_ATTACKS.replace("OUTSIDE", outside.url))
    (folder / "leaving.html").write_text(f"<script>location.href = '{outside.url}/left'</script>stays")
    (folder / "notebook.ipynb").write_text(json.dumps(make_notebook()))
    (folder / "model.onnx").write_bytes(onnx_times(2.0, 3))
    (folder / "weights.bin").write_bytes(bytes(5000))
    run.complete()
    return str(run.id)


def make_png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + b"\x20\x60\xc0" * 8 for _ in range(8))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def make_notebook() -> dict[str, object]:
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["printed\n"]},
        {"output_type": "display_data", "data": {"text/html": ATTACK, "text/plain": "the plain form"}},
        {"output_type": "display_data", "data": {"application/javascript": "document.title='hacked'"}},
        {"output_type": "display_data", "data": {"image/png": b64encode(make_png()).decode()}},
        {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\x1b[31mValueError\x1b[0m: wrong"]},
    ]
    cells = [
        {"cell_type": "markdown", "source": [f"# Heading {ATTACK}"]},
        {"cell_type": "code", "execution_count": 3, "source": ["print('printed')"], "outputs": outputs},
    ]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def contents(page: Page) -> Locator:
    return page.locator(".browser-file")


def open_file(studio: Studio, run_id: str, name: str) -> Page:
    page = studio.open(f"runs/{run_id}/files?file={name}")
    expect(contents(page).get_by_role("heading", name=name.rpartition("/")[2])).to_be_visible()
    return page


def test_files_appear_while_the_run_goes_on_and_secrets_stay_hidden(studio: Studio, job: Job) -> None:
    page = studio.open(f"runs/{job.id}/files")
    tree = page.get_by_role("tree", name="Files of the run")
    expect(tree.get_by_role("treeitem", name="first.txt")).to_be_visible()
    expect(tree.get_by_role("treeitem", name="second.txt")).to_have_count(0)
    job.let("second")
    tree.get_by_role("treeitem", name="second.txt").click()
    expect(contents(page)).to_contain_text("the second file")
    tree.get_by_role("treeitem", name=re.compile("70_driver_log")).click()
    expect(contents(page)).to_contain_text(f"the key is {'*' * len(SECRET)}")
    assert SECRET not in page.content()


def test_thousands_of_files_are_filtered_and_walked_by_keys(studio: Studio, written: str) -> None:
    page = studio.open(f"runs/{written}/files")
    tree = page.get_by_role("tree")
    expect(page.get_by_text(re.compile(rf"{MANY + FILES} files"))).to_be_visible()
    tree.get_by_role("treeitem", name=re.compile("outputs")).click()
    tree.get_by_role("treeitem", name=re.compile("many")).click()
    expect(tree.get_by_role("treeitem", name="step_9.txt")).to_be_visible()
    assert tree.get_by_role("treeitem").count() < 100
    page.get_by_role("searchbox", name="Filter files by name").fill("step_29")
    expect(page.get_by_text(f"111 of {MANY + FILES}")).to_be_visible()
    tree.focus()
    for key in ("Home", "ArrowDown", "ArrowDown", "Enter"):
        tree.press(key)
    expect(contents(page)).to_contain_text("The file is empty.")
    expect(page).to_have_url(re.compile(r"step_29\.txt"))


def test_texts_and_tables_are_shown_part_by_part(studio: Studio, written: str) -> None:
    page = open_file(studio, written, "outputs/long.txt")
    expect(contents(page)).to_contain_text("line 20000")
    assert "line 99999" not in contents(page).inner_text()
    more = page.get_by_role("button", name="Show more")
    for _ in range(4):
        more.click()
        expect(more.or_(contents(page).get_by_text("line 99999"))).not_to_be_disabled()
    expect(contents(page)).to_contain_text("line 99999")
    expect(more).to_have_count(0)
    page = open_file(studio, written, "outputs/table.csv")
    expect(page.get_by_role("columnheader")).to_have_text(["x", "<b>y</b>"])
    expect(page.get_by_role("cell", name='=HYPERLINK("http://x")')).to_have_count(100)
    page.get_by_role("button", name="Show more").click()
    expect(page.get_by_role("cell", name='=HYPERLINK("http://x")')).to_have_count(150)
    page = open_file(studio, written, "outputs/table.parquet")
    expect(contents(page)).to_contain_text("100 of 5000 rows")
    expect(page.get_by_role("columnheader")).to_have_text(["step int64", "loss string"])
    page = open_file(studio, written, "outputs/values.json")
    expect(contents(page)).to_contain_text('"html": "<b>"')
    page.get_by_role("button", name="Formatted").click()
    expect(contents(page)).to_contain_text('"html":"<b>"')


def test_pictures_notebooks_and_models_are_shown(studio: Studio, written: str) -> None:
    page = open_file(studio, written, "outputs/picture.png")
    expect(page.get_by_role("img", name="outputs/picture.png")).to_have_js_property("naturalWidth", 8)
    page = open_file(studio, written, "outputs/notebook.ipynb")
    cells = page.get_by_role("list", name="Cells")
    expect(cells.get_by_role("listitem")).to_have_count(2)
    expect(cells).to_contain_text("the plain form")
    expect(cells).to_contain_text("ValueError: wrong")
    expect(cells.get_by_role("img")).to_have_js_property("width", 8)
    page = open_file(studio, written, "outputs/model.onnx")
    expect(page.get_by_role("table").last).to_contain_text("Mul")
    page = open_file(studio, written, "outputs/weights.bin")
    expect(contents(page)).to_contain_text("there is no preview for its kind")


@pytest.mark.parametrize("name", [NAME_ATTACK, "table.parquet", "notebook.ipynb", "table.csv"])
def test_nothing_in_a_file_is_run(studio: Studio, written: str, name: str) -> None:
    """The policy of the page would refuse scripts, which fails the test as well: see `Studio`."""
    page = studio.open(f"runs/{written}/files?file=outputs/{name.replace('<', '%3C').replace('=', '%3D')}")
    expect(contents(page).get_by_role("heading", name=name)).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="Loading")).to_have_count(0)
    assert "hacked" not in page.title()
    assert page.locator(".browser script, .browser iframe, .browser img[src=x], .browser svg").count() == 0


@pytest.mark.parametrize("name", ["page.html", "drawing.svg"])
def test_pages_and_drawings_are_shown_or_their_source(studio: Studio, written: str, name: str) -> None:
    page = open_file(studio, written, f"outputs/{name}")
    frame = page.frame_locator(f"iframe[title='Page outputs/{name}']")
    expect(frame.locator("h1, rect").first).to_be_visible()
    page.get_by_role("button", name="Source").click()
    expect(contents(page)).to_contain_text("document.title='hacked'")
    expect(page).to_have_url(re.compile("view=source"))
    assert page.locator(".browser script, .browser iframe, .browser img[src=x], .browser svg").count() == 0
    assert "hacked" not in page.title()
    studio.close_refused(page)


def test_a_page_runs_in_a_sandbox(studio: Studio, written: str, outside: Outside) -> None:
    """Its scripts run and reach nothing, neither in the frame nor when its address is opened by itself."""
    page = studio.open(f"runs/{written}/files?file=outputs/attacks.html")
    frame = page.frame_locator("iframe")
    expect(frame.locator("#done")).to_have_text("all was tried")
    expect(frame.locator("#reached")).to_have_text("")
    assert "hacked" not in page.title() and "hacked" not in page.url
    # Without the attribute of the frame, only the headers protect the session.
    page.goto(f"{studio.api}/runs/{written}/pages/outputs/attacks.html")
    expect(page.locator("#done")).to_have_text("all was tried")
    expect(page.locator("#reached")).to_have_text("")
    studio.close_refused(page)
    assert outside.asked == []


def test_the_frame_of_a_page_stays_on_this_site(studio: Studio, written: str, outside: Outside) -> None:
    page = studio.open(f"runs/{written}/files?file=outputs/leaving.html")
    with page.expect_event("console", lambda message: "Framing" in message.text or "frame-src" in message.text):
        page.reload()
    studio.close_refused(page)
    assert outside.asked == []


def test_one_file_or_all_are_downloaded(studio: Studio, job: Job, written: str) -> None:
    page = studio.open(f"runs/{written}/files?file=outputs/page.html&view=source")
    with page.expect_download() as one:
        page.get_by_role("link", name="Download", exact=True).click()
    assert Path(one.value.path()).read_text() == f"<h1>Title</h1>{ATTACK}"
    with page.expect_download() as everything:
        page.get_by_role("link", name="Download all").click()
    with zipfile.ZipFile(everything.value.path()) as archive:
        assert archive.testzip() is None
        assert len(archive.namelist()) == MANY + FILES
        assert archive.read("outputs/values.json") == b'{"loss":[1,2],"html":"<b>"}'
    answer = studio.server.request("GET", f"{studio.api}/runs/{job.id}/archive?prefix=azureml-logs/")
    with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
        texts = b"".join(archive.read(name) for name in archive.namelist() if "driver_log" in name)
    assert b"the key is *" in texts
    assert SECRET.encode() not in texts
    assert studio.server.request("GET", f"{studio.api}/runs/{job.id}/archive?prefix=../").status == 404


def test_the_code_is_shown_as_it_was_submitted(studio: Studio, job: Job) -> None:
    page = studio.open(f"runs/{job.id}/code")
    expect(contents(page).get_by_role("heading", name="train.py")).to_be_visible()
    expect(page.get_by_role("region", name="Contents of train.py").locator("code")).to_have_text(SCRIPT.rstrip("\n"))
    expect(page.locator(".code-name").first).to_have_text("wait_for")
    expect(page.locator(".code-string").first).to_have_text('"""Writes files when it is told to."""')
    tree = page.get_by_role("tree", name="Files of the snapshot")
    tree.get_by_role("treeitem", name=NAME_ATTACK).click()
    expect(contents(page)).to_contain_text(ATTACK)
    tree.get_by_role("treeitem", name="binary.dat").click()
    expect(contents(page)).to_contain_text("there is no preview for its kind")
    with page.expect_download() as archive:
        page.get_by_role("link", name="Download archive").click()
    with zipfile.ZipFile(archive.value.path()) as found:
        assert found.read("train.py").decode() == SCRIPT


def test_the_environment_says_what_was_installed(studio: Studio, job: Job) -> None:
    page = studio.open(f"runs/{job.id}/environment")
    packages = page.get_by_role("region", name="Installed packages")
    expect(packages.get_by_role("row", name=re.compile("tinypackage"))).to_be_visible()
    packages.get_by_role("searchbox").fill("nothing")
    expect(packages.get_by_role("row", name=re.compile("tinypackage"))).to_have_count(0)
    expect(page.get_by_role("region", name="Definition")).to_contain_text("tinypackage")
    page.get_by_role("link", name="Log of the build").click()
    expect(page.get_by_role("region", name="20_image_build_log.txt")).to_contain_text("tinypackage")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    "tab", ["files?file=outputs/notebook.ipynb", "files?file=outputs/table.csv", "code", "environment"]
)
def test_a_reader_sees_it_and_axe_finds_nothing_serious(
    studio: Studio, job: Job, written: str, tab: str, theme: str
) -> None:
    run_id = written if tab.startswith("files") else job.id
    page = studio.open(f"runs/{run_id}/{tab}", "reader", theme="dark" if theme == "dark" else "light")
    expect(page.get_by_role("heading", level=2).first).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="Loading")).to_have_count(0)
    studio.check_accessibility(page)
