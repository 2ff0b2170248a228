"""Notifications: real receivers hear of real runs, whatever happens to the dispatcher, and no secret is shown."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.certificates import write_certificate
from tests.conftest import dispatcher_handle, ended, files_below, open_workspace, until, wait_gone
from tests.receivers import WebReceiver, receive_mail, receive_posts
from tests.server_people import People, add_people
from tests.server_process import ServerProcess

from trainmaster import Estimator, Experiment, Run, Workspace
from trainmaster.cli.entry import run as run_command
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.folders import WorkspaceFolder

KEY = "a signing key of the team"
PASSWORD = "the password of the robot"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, certificate: tuple[Path, Path]) -> Iterator[Workspace]:
    """A workspace whose dispatcher tries again at once, and trusts the certificate of the mail server."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINMASTER_NOTIFICATION_RETRY_SECONDS", "0.02")
        patch.setenv("SSL_CERT_FILE", str(certificate[1]))
        with open_workspace("told", tmp_path_factory.mktemp("told"), None) as ws:
            ws.connection.call("status")
            yield ws


@pytest.fixture
def command(shared: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Any]:
    """Runs a command in the shared workspace; returns what it prints. Its channels are removed at the end."""

    def call(*argv: str, code: int = 0, typed: str = "") -> str:
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        capsys.readouterr()
        assert run_command([*argv, "--workspace", str(shared.path)]) == code, capsys.readouterr()
        printed = capsys.readouterr()
        assert KEY not in printed.out + printed.err and PASSWORD not in printed.out + printed.err
        return printed.out if code == 0 else printed.err + printed.out

    yield call
    for channel in shared.connection.call("notifications.list"):
        shared.connection.call("notifications.delete", name=channel["name"])


@pytest.fixture
def receiver() -> Iterator[WebReceiver]:
    with receive_posts() as found:
        yield found


def start(shared: Workspace, experiment: str = "told", **labels: Any) -> Run:
    return Experiment(shared, experiment).start_logging(snapshot_directory=None, **labels)


def test_a_webhook_hears_of_a_run_that_fails(
    command: Any, receiver: WebReceiver, launch: Callable[..., Run], shared: Workspace
) -> None:
    said = command(
        "notify", "add", "team", "--webhook", receiver.url, "--sign", "--on", "failed,hung", typed=f"{KEY}\n"
    )
    assert said == "Channel 'team' is told of runs that failed or hung.\n"
    fine, bad = launch("", experiment="hooks"), launch("raise ValueError('no luck')", experiment="hooks")
    assert [ended(run)["status"] for run in (fine, bad)] == ["Completed", "Failed"]
    until(lambda: receiver.received)
    (request,) = receiver.received
    assert request.path == "/hook?x=1"
    assert request.message["event"] == "failed" and request.message["workspace"] == shared.name
    assert request.message["run"]["id"] == bad.id
    assert "no luck" in request.message["run"]["error"]["message"]
    assert request.headers["X-Trainmaster-Delivery"] == request.message["id"]
    assert is_genuine(KEY, request.headers["X-Trainmaster-Signature"], request.body)
    assert not is_genuine(KEY, request.headers["X-Trainmaster-Signature"], request.body + b" ")
    assert "(signed)" in until(lambda: (found := command("notify", "list")).count(":") and found)


def is_genuine(key: str, header: str, body: bytes) -> bool:
    """As the guide says."""
    parts = dict(part.split("=", 1) for part in header.split(","))
    expected = hmac.new(key.encode(), parts["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, parts["v1"])


def test_a_run_that_hangs_is_reported_as_such(command: Any, receiver: WebReceiver, launch: Callable[..., Run]) -> None:
    command("notify", "add", "hung", "--webhook", receiver.url, "--on", "hung")
    run = launch("import time\ntime.sleep(600)", hang_seconds=1)
    assert ended(run)["status"] == "Failed"
    until(lambda: receiver.received)
    assert receiver.received[0].message["run"]["error"]["code"] == "HangDetected"
    assert receiver.received[0].message["event"] == "hung"


def test_a_run_names_its_channels(command: Any, receiver: WebReceiver, shared: Workspace, project: Any) -> None:
    command("notify", "add", "chosen", "--webhook", receiver.url, "--only-chosen", "-e", "elsewhere")
    start(shared).complete()
    run = start(shared)
    run.notify("chosen")
    child = run.child_run("a trial")
    child.notify("chosen")
    child.complete()
    run.cancel()
    estimator = Estimator(str(project(train="")), entry_script="train.py", user_managed=True, compute_target="local")
    submitted = Experiment(shared, "told").submit(estimator, notify="chosen")
    ended(submitted)
    folder = str(project(train=""))
    words = ("submit", folder, "train.py", "--user-managed", "--wait", "--json", "--notify", "chosen")
    typed = json.loads(command(*words))["id"]
    assert "there is no channel 'x'" in command(*words, "--notify", "x", code=2)
    told = until(lambda: len(receiver.received) >= 4 and receiver.received)
    assert {(each.message["run"]["id"], each.message["event"]) for each in told} == {
        (child.id, "completed"),
        (run.id, "canceled"),
        (submitted.id, "completed"),
        (typed, "completed"),
    }
    with pytest.raises(UserErrorException, match="there is no channel 'chosem' for notifications") as caught:
        run.notify("chosem")
    assert "chosen" in caught.value.hint


def test_a_receiver_that_fails_is_tried_again_with_the_same_id(
    command: Any, receiver: WebReceiver, shared: Workspace
) -> None:
    receiver.answers = [500, 302, 404]
    command("notify", "add", "flaky", "--webhook", receiver.url)
    start(shared).complete()
    until(lambda: len(receiver.received) >= 4)
    assert len({each.message["id"] for each in receiver.received}) == 1
    until(lambda: json.loads(command("notify", "list", "--json"))[0]["last_error"] == "")
    assert shared.connection.call("notifications.list")[0]["last_sent_at"] is not None


def test_a_receiver_that_does_not_answer_delays_no_run(
    command: Any, receiver: WebReceiver, shared: Workspace, launch: Callable[..., Run]
) -> None:
    receiver.hold.clear()
    command("notify", "add", "slow", "--webhook", receiver.url)
    for _ in range(12):
        start(shared).complete()
    until(lambda: len(receiver.received) >= 4)
    assert ended(launch("print(1)"))["status"] == "Completed"
    receiver.hold.set()
    # A busy machine may take so long that some are sent twice.
    until(lambda: len({each.message["run"]["id"] for each in receiver.received}) == 13)


def test_a_killed_dispatcher_loses_no_notification(command: Any, shared: Workspace, launch: Callable[..., Run]) -> None:
    with receive_posts() as gone:
        port = gone.port
    command("notify", "add", "later", "--webhook", f"http://127.0.0.1:{port}/")
    runs = [launch("") for _ in range(3)]
    for run in runs:
        ended(run)
    folder = WorkspaceFolder(Path(shared.path))
    handle = dispatcher_handle(folder)
    assert handle is not None
    os.kill(int(folder.lock.read_text()), signal.SIGKILL)
    wait_gone(handle)
    with receive_posts(port) as receiver:
        assert shared.connection.call("status")
        until(lambda: {each.message["run"]["id"] for each in receiver.received} == {run.id for run in runs})


def test_mail_is_sent(command: Any, shared: Workspace) -> None:
    command("notify", "add", "me", "--email", "ann@example.org,bob@example.org", "--mine")
    assert "no mail server is set" in command("notify", "test", "me", code=5)
    with receive_mail() as mail:
        words = ("--security", "none", "--port", str(mail.port), "--sender", "robot@example.org")
        command("notify", "smtp", "127.0.0.1", *words)
        run = start(shared, display_name="größe")
        run.fail("out of luck")
        until(lambda: mail.letters)
        (letter,) = mail.letters
        assert mail.recipients == ["ann@example.org", "bob@example.org"]
        assert "out of luck" in letter and f"Run {run.id} has failed." in letter
        assert "Message-ID: <" in letter and "From: robot@example.org\n" in letter


def test_mail_is_sent_encrypted_with_a_password(
    command: Any, shared: Workspace, certificate: tuple[Path, Path]
) -> None:
    command("notify", "add", "me", "--email", "ann@example.org")
    with receive_mail(certificate) as mail:
        words = ("127.0.0.1", "--port", str(mail.port), "--sender", "robot@example.org", "--user", "robot")
        command("notify", "smtp", *words, typed=PASSWORD)
        assert json.loads(command("notify", "smtp", "--json")) == {
            "host": "127.0.0.1",
            "port": mail.port,
            "security": "starttls",
            "user": "robot",
            "sender": "robot@example.org",
        }
        assert command("notify", "test", "me") == "Channel 'me' was told.\n"
        assert len(mail.letters) == len(mail.sign_ins) == 1
        assert "is not sent to a mail server without encryption" in command(
            "notify", "smtp", *words, "--security", "none", typed=PASSWORD, code=2
        )


def test_a_command_gets_the_message(command: Any, shared: Workspace, tmp_path: Path) -> None:
    place = tmp_path / "told.json"
    line = f'cat > {place}.new; echo "$NOTIFICATION_RUN $NOTIFICATION_STATUS" >> {place}.new; mv {place}.new {place}'
    command("notify", "add", "desk", "--command", line)
    run = start(shared)
    run.complete()
    until(place.exists)
    message, _, rest = place.read_text().rpartition("}")
    assert json.loads(message + "}")["run"]["id"] == run.id
    assert rest.strip() == f"{run.id} Completed"
    command("notify", "add", "desk", "--command", "echo no luck; exit 3")
    assert "could not be told: the command ended with 3: no luck" in command("notify", "test", "desk", code=5)
    assert "the command ended with 3" in command("notify", "list")


def test_channels_in_a_program(shared: Workspace, receiver: WebReceiver, tmp_path: Path) -> None:
    channels = shared.notifications
    told = tmp_path / "told"
    made = channels.add("program", command=f"touch {told}", events=["failed"])
    assert (made.kind, made.events, made.owner) == ("command", ("failed",), "")
    assert channels.test("program").is_delivered and told.exists()
    mine = channels.add("mine", webhook=f"{receiver.url}/hook", mine=True, key="k")
    assert mine.is_signed and mine.owner
    assert {"program", "mine"} <= {each.name for each in channels.list()}
    channels.add("program", command="exit 4")
    assert "4" in channels.test("program").error
    for name in ("program", "mine"):
        channels.remove(name)
    assert not {"program", "mine"} & {each.name for each in channels.list()}
    with pytest.raises(UserErrorException, match="there is no channel 'program'"):
        channels.remove("program")
    with pytest.raises(UserErrorException, match="exactly one of webhook, email and command"):
        channels.add("both", email=["ann@example.org"], command="true")


def test_wrong_channels_are_refused(command: Any) -> None:
    assert "exactly one of" in command("notify", "add", "x", code=2)
    assert "exactly one of" in command("notify", "add", "x", "--email", "a@b.c", "--command", "true", code=2)
    assert "must be a URL" in command("notify", "add", "x", "--webhook", "example.org", code=2)
    assert "is not an e-mail address" in command("notify", "add", "x", "--email", "ann", code=2)
    assert "is not an event of a run" in command("notify", "add", "x", "--command", "true", "--on", "died", code=2)
    assert "cannot be the name" in command("notify", "add", "a b", "--command", "true", code=2)
    assert "there is no channel 'x'" in command("notify", "remove", "x", code=2)
    assert "only a webhook is signed" in command("notify", "add", "x", "--command", "true", "--sign", typed="k", code=2)


def test_no_secret_is_readable_in_the_workspace(shared: Workspace) -> None:
    """After the tests above, which gave two."""
    for path in files_below(Path(shared.path)):
        content = path.read_bytes()
        assert KEY.encode() not in content and PASSWORD.encode() not in content, path


# On a server


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINMASTER_NOTIFICATION_RETRY_SECONDS", "0.02")
        server = ServerProcess(tmp_path_factory.mktemp("server") / "root")
        yield add_people(server)
        server.end()


def hook(url: str, name: str = "hook", **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "webhook", "address": url, **more}


def test_who_may_add_what(people: People) -> None:
    public = hook("https://example.org/", owner="owner")
    assert people.call("reader", "notifications.put_own", **public).status == 403
    assert people.call("contributor", "notifications.put", **hook("https://example.org/")).status == 403
    program = {"name": "program", "kind": "command", "address": "true"}
    refused = people.call("contributor", "notifications.put_own", owner="contributor", **program)
    assert refused.status == 403 and "you may not add a command" in refused.json()["error"]["headline"]
    assert people.call("contributor", "notifications.set_smtp", host="x", sender="a@b.c").status == 403
    made = people.call("contributor", "notifications.put_own", **public, key=KEY)
    # What a client says about itself is not believed.
    assert made.status == 200 and made.json()["result"]["owner"] == "contributor"
    assert people.call("owner", "notifications.put", **program).json()["result"]["created_by"] == "owner"
    listed = people.call("reader", "notifications.list").json()["result"]
    assert [each["name"] for each in listed] == ["program"]
    mine = people.call("contributor", "notifications.list").json()["result"]
    assert [each["name"] for each in mine] == ["hook", "program"]
    assert KEY not in json.dumps(mine) + json.dumps(made.json())
    assert people.call("owner", "notifications.delete_own", owner="contributor", name="hook").status == 400
    assert people.call("contributor", "notifications.delete_own", owner="", name="program").status == 400
    assert people.call("owner", "notifications.put_own", **public).status == 400
    audit = people.server.request("GET", "/api/v1/audit").body.decode()
    assert "notifications.put_own" in audit and KEY not in audit
    assert people.call("contributor", "notifications.delete_own", owner="", name="hook").status == 200
    assert people.call("owner", "notifications.delete", name="program").status == 200


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "10.0.0.1", "[::ffff:127.0.0.1]"]
)
def test_private_addresses_are_refused(people: People, host: str) -> None:
    answer = people.call("owner", "notifications.put", **hook(f"http://{host}:1/"))
    assert answer.status == 400 and "are not allowed on this server" in answer.json()["error"]["headline"], answer


def test_names_and_mail_servers_of_private_networks_are_not_reached(people: People, receiver: WebReceiver) -> None:
    # These spell 127.0.0.1 so that only looking it up tells.
    for host in ("localhost.", "127.1", "2130706433", "0x7f000001"):
        added = people.call("owner", "notifications.put", **hook(f"http://{host}:{receiver.port}/"))
        if added.status == 200:
            result = people.call("owner", "notifications.test", name="hook").json()["result"]
            assert not result["is_delivered"] and "private network" in result["error"], (host, result)
    assert receiver.received == []
    with receive_mail() as mail:
        smtp = {"host": "127.0.0.1", "port": mail.port, "security": "none", "sender": "a@b.c"}
        assert people.call("owner", "notifications.set_smtp", **smtp).status == 200
        added = people.call("owner", "notifications.put", name="mail", kind="email", address="a@b.c")
        assert added.status == 200
        result = people.call("owner", "notifications.test", name="mail").json()["result"]
        assert "private network" in result["error"] and mail.letters == []


def test_an_administrator_allows_a_network(people: People, receiver: WebReceiver) -> None:
    server = people.server
    server.stop()
    file = server.root / "server.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "notification_networks": ["127.0.0.0/8"]}))
    server.start()
    added = people.call("contributor", "notifications.put_own", owner="", **hook(receiver.url, "near"))
    assert added.status == 200, added
    finished = people.call("owner", "runs.finish", run_id=people.run_id, status="Completed")
    assert finished.status == 200
    # It is for runs of its owner only, and this one is the administrator's.
    result = people.call("contributor", "notifications.test_own", owner="", name="near").json()["result"]
    assert result == {"is_delivered": True, "error": ""}
    assert [each.message["event"] for each in receiver.received] == ["test"]
