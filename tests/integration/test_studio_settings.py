"""The studio's pages of environments, data and settings, in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.studio import WORKSPACE, Studio, run_studio
from tests.studio_team import ATTACK, ask, use_workspace

from trainmaster import Dataset, Environment, Experiment

CSV = f"customer,plan,churned\n1,monthly,no\n2,{ATTACK},yes\n"
NAME = f"customers {ATTACK}"


def prepare(studio: Studio, folder: Path) -> None:
    """Register an environment in two versions, and a dataset of uploaded files."""
    source = folder / "data"
    (source / "2025").mkdir(parents=True)
    (source / "2025" / "customers.csv").write_text(CSV)
    (source / "notes.txt").write_text(f"remember {ATTACK}")
    with use_workspace(studio, "contributor", folder / "cache") as workspace:
        environment = Environment(f"training {ATTACK}")
        environment.python.conda_dependencies.add_pip_package("scikit-learn==1.5.0")
        environment.register(workspace)
        environment.python.conda_dependencies.add_pip_package("pandas==2.2.2")
        environment.register(workspace)
        store = workspace.get_default_datastore()
        store.upload(str(source), target_path="customers", show_progress=False)
        table = Dataset.Tabular.from_delimited_files([(store, "customers/2025/*.csv")], validate=False)
        table.register(workspace, NAME, description=ATTACK, tags={"source": ATTACK})
        files = Dataset.File.from_files([(store, "customers")], validate=False)
        files.register(workspace, NAME, create_new_version=True)


@pytest.fixture(scope="module")
def studio_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    folder = tmp_path_factory.mktemp("settings")
    with run_studio(folder / "root") as studio:
        prepare(studio, folder)
        yield studio


def _confirm(page: Page, button: str, action: str) -> None:
    page.get_by_role("button", name=button, exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name=action).click()


def test_environments_with_versions_and_labels(studio: Studio) -> None:
    page = studio.open("environments", "contributor")
    page.get_by_role("link", name=f"training {ATTACK}").click()
    expect(page.get_by_text("pandas==2.2.2").first).to_be_visible()
    page.get_by_role("link", name="1", exact=True).click()
    expect(page.get_by_text("pandas==2.2.2")).to_have_count(0)
    page.get_by_label("New label").fill(f"live {ATTACK}")
    page.get_by_role("button", name="Add label").click()
    expect(page.get_by_role("group", name="All versions").get_by_role("row").nth(2)).to_contain_text(f"live {ATTACK}")
    reader = studio.open(f"environments/training {ATTACK}/1", "reader")
    expect(reader.get_by_text(f"live {ATTACK}").first).to_be_visible()
    expect(reader.get_by_label("New label")).to_have_count(0)


def test_folders_are_browsed_and_files_shown_and_downloaded(studio: Studio) -> None:
    page = studio.open("data", "reader")
    page.get_by_role("link", name="workspaceblobstore").click()
    page.get_by_role("link", name="customers/").click()
    expect(page).to_have_url(re.compile("/data/datastores/workspaceblobstore/customers$"))
    page.get_by_role("button", name="notes.txt").click()
    expect(page.get_by_role("dialog")).to_contain_text(f"remember {ATTACK}")
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    page.get_by_role("link", name="2025/").click()
    page.get_by_role("button", name="customers.csv").click()
    rows = page.get_by_role("region", name="Rows").get_by_role("row")
    expect(rows).to_have_count(3)
    expect(rows.nth(2)).to_contain_text(ATTACK)
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download customers/2025/customers.csv").click()
    assert Path(download.value.path()).read_text() == CSV
    page.get_by_role("navigation", name="Folder").get_by_role("link", name="customers").click()
    expect(page.get_by_role("button", name="notes.txt")).to_be_visible()
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)


def test_a_dataset_has_versions_and_a_beginning(studio: Studio) -> None:
    page = studio.open("data", "reader")
    page.get_by_role("link", name=NAME).click()
    expect(page.get_by_role("group", name="All versions").get_by_role("row")).to_have_count(3)
    page.get_by_role("group", name="All versions").get_by_role("link", name="1", exact=True).click()
    expect(page.get_by_role("region", name="Its beginning")).to_contain_text("customer")
    expect(page.get_by_role("region", name="Tags")).to_contain_text(ATTACK)
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)


def test_a_token_is_shown_once_works_and_is_revoked(studio: Studio) -> None:
    page = studio.open("settings/tokens", "contributor")
    page.get_by_label("What it is for").fill(f"laptop {ATTACK}")
    page.get_by_label("Rights").select_option("reader")
    page.get_by_label("Workspaces").select_option("one")
    page.get_by_role("button", name="Create a token").click()
    text = page.get_by_role("dialog").locator(".secret").inner_text()
    page.get_by_role("dialog").get_by_role("button", name="Done").click()
    expect(page.get_by_text(text)).to_have_count(0)
    row = page.get_by_role("row", name=f"laptop {ATTACK}")
    expect(row).to_contain_text("as reader in team")
    path = f"{studio.api}/queue"
    assert studio.server.request("GET", path, token=text).status == 200
    _confirm(page, f"Revoke laptop {ATTACK}", "Revoke the token")
    expect(row).to_contain_text("revoked")
    assert studio.server.request("GET", path, token=text).status == 401


def test_an_owner_decides_about_members_and_quotas(studio: Studio) -> None:
    studio.server.request("POST", "/api/v1/users", {"name": "ann"})
    page = studio.open("settings/members", "owner")
    form = page.get_by_role("form", name="New member")
    form.get_by_label("User").fill("ann")
    form.get_by_label("Role").select_option("reader")
    page.get_by_role("button", name="Give the role").click()
    expect(page.get_by_label("Role of ann")).to_have_value("reader")
    page.get_by_label("Role of ann").select_option("contributor")
    expect(page.get_by_text("ann is contributor of team.")).to_be_visible()
    assert {"user": "ann", "role": "contributor", "is_by_group": False} in ask(studio, "GET", "/members")["members"]
    _confirm(page, "Remove ann", "Take the role away")
    expect(page.get_by_label("Role of ann")).to_have_count(0)
    page.get_by_role("navigation", name="Settings").get_by_role("link", name="Quotas").click()
    page.get_by_role("button", name="Set a quota").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Whose").select_option("user")
    dialog.get_by_role("textbox", name="User").fill(f"ann {ATTACK}")
    dialog.get_by_label("Runs at once").fill("many")
    expect(dialog.get_by_role("button", name="Set the quota")).to_be_disabled()
    dialog.get_by_label("Runs at once").fill("3")
    dialog.get_by_label("Disk").fill("1.5 GB")
    dialog.get_by_role("button", name="Set the quota").click()
    row = page.get_by_role("row", name=f"ann {ATTACK}")
    expect(row).to_contain_text("0 of 3")
    expect(row).to_contain_text("0 B of 1.5 GB")
    row.get_by_role("button", name="Change the quota").click()
    dialog.get_by_label("Runs at once").fill("")
    dialog.get_by_role("button", name="Set the quota").click()
    expect(row).not_to_contain_text("of 3")
    (quota,) = [each["quota"] for each in ask(studio, "GET", "/quotas")["quotas"] if each["quota"]["owner"]]
    assert (quota["runs"], quota["disk_bytes"]) == (None, 1_500_000_000)


def test_secrets_are_set_and_deleted_and_never_shown(studio: Studio) -> None:
    page = studio.open("settings/secrets", "contributor")
    page.get_by_label("Name").fill("api-key")
    page.get_by_label("Value").fill("very-secret-value")
    page.get_by_role("button", name="Keep the secret").click()
    expect(page.get_by_text("api-key is kept.")).to_be_visible()
    expect(page.get_by_label("Value")).to_have_value("")
    assert "very-secret-value" not in page.content()
    reader = studio.open("settings/secrets", "reader")
    expect(reader.get_by_text("api-key")).to_be_visible()
    expect(reader.get_by_role("button", name="Keep the secret")).to_have_count(0)
    expect(reader.get_by_role("button", name="Delete api-key")).to_have_count(0)
    _confirm(page, "Delete api-key", "Delete the secret")
    expect(page.get_by_text("The workspace has no secrets.")).to_be_visible()


def test_channels_are_added_tested_edited_and_deleted(studio: Studio) -> None:
    page = studio.open("settings/notifications", "owner")
    expect(page.get_by_text("There are no channels.")).to_be_visible()
    page.get_by_role("button", name="Add a channel").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("program")
    dialog.get_by_label("Kind").select_option("Command")
    dialog.get_by_label("Command line").fill("exit 3")
    dialog.get_by_label("completed").uncheck()
    dialog.get_by_label("canceled").uncheck()
    dialog.get_by_role("button", name="Keep the channel").click()
    row = page.get_by_role("row").filter(has_text="program")
    expect(row).to_contain_text("failed, hung")
    expect(row).to_contain_text("all runs")
    page.get_by_role("button", name="Test program").click()
    expect(page.get_by_text("program could not be told")).to_be_visible()
    page.get_by_role("button", name="Edit program").click()
    dialog.get_by_label("Command line").fill("true")
    dialog.get_by_role("button", name="Keep the channel").click()
    expect(row).to_contain_text("true")
    page.get_by_role("button", name="Test program").click()
    expect(page.get_by_text("program was told.")).to_be_visible()
    # A contributor sees it and adds one of their own, which runs no command.
    other = studio.open("settings/notifications", "contributor")
    expect(other.get_by_role("row").filter(has_text="program")).to_be_visible()
    expect(other.get_by_role("button", name="Delete program")).to_have_count(0)
    other.get_by_role("button", name="Add a channel").click()
    dialog = other.get_by_role("dialog")
    expect(dialog.get_by_label("Kind").locator("option")).to_have_text(["Webhook", "E-mail"])
    dialog.get_by_label("Name", exact=True).fill("mine")
    dialog.get_by_label("URL").fill("https://hooks.example.org/x")
    dialog.get_by_label("Key").fill("a key that nobody sees")
    dialog.get_by_role("button", name="Keep the channel").click()
    expect(other.get_by_role("row").filter(has_text="mine")).to_contain_text("your runs")
    assert "a key that nobody sees" not in other.content()
    studio.check_accessibility(other)
    reader = studio.open("settings/notifications", "reader")
    expect(reader.get_by_role("row").filter(has_text="program")).to_be_visible()
    expect(reader.get_by_text("hooks.example.org")).to_have_count(0)
    _confirm(other, "Delete mine", "Delete the channel")
    _confirm(page, "Delete program", "Delete the channel")
    expect(page.get_by_text("There are no channels.")).to_be_visible()


def test_retention_rules_are_tried_set_and_deleted(studio: Studio, tmp_path: Path) -> None:
    with use_workspace(studio, "contributor", tmp_path / "cache") as workspace:
        for number in range(3):
            run = Experiment(workspace, "kept").start_logging()
            run.log("loss", number)
            run.complete()
    page = studio.open("settings/retention", "owner")
    expect(page.get_by_text("There are no rules: every run is kept.")).to_be_visible()
    page.get_by_role("button", name="Add a rule").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Experiment").fill("kept")
    dialog.get_by_label("Keep", exact=True).fill("newest x")
    dialog.get_by_role("button", name="Dry run").click()
    expect(page.get_by_text("newest x").first).to_be_visible()
    dialog.get_by_label("Keep", exact=True).fill("newest 2")
    dialog.get_by_role("button", name="Dry run").click()
    # Runs that have just ended are spared.
    expect(dialog.get_by_text("Nothing would be deleted: all 3 runs are kept.")).to_be_visible()
    studio.check_accessibility(page)
    dialog.get_by_role("button", name="Set the rule").click()
    rules = page.get_by_role("group", name="Retention rules")
    expect(rules.get_by_role("row").filter(has_text="newest 2")).to_contain_text("kept")
    reader = studio.open("settings/retention", "reader")
    reader.get_by_role("button", name="Dry run of the rule of kept").click()
    expect(reader.get_by_role("dialog").get_by_role("button", name="Set the rule")).to_have_count(0)
    _confirm(page, "Delete the rule of kept", "Delete the rule")
    expect(page.get_by_text("There are no rules: every run is kept.")).to_be_visible()


def test_an_administrator_manages_users_and_reads_the_audit_log(studio: Studio) -> None:
    page = studio.open("settings/users")
    page.get_by_label("Name").fill("bob")
    page.get_by_role("button", name="Add a user").click()
    page.get_by_role("button", name="Sign-in link for bob").click()
    url = page.get_by_role("dialog").locator(".secret").inner_text()
    page.get_by_role("dialog").get_by_role("button", name="Done").click()
    context = studio.browser.new_context()
    guest = context.new_page()
    guest.goto(url)
    guest.get_by_role("button", name="Sign in", exact=True).click()
    expect(guest.get_by_text("There is no workspace yet.").first).to_be_visible()
    context.close()
    _confirm(page, "Make administrator: bob", "Give the rights")
    expect(page.get_by_text("bob is an administrator.")).to_be_visible()
    _confirm(page, "Remove bob", "Remove the user")
    expect(page.get_by_role("row", name="bob")).to_have_count(0)
    page.get_by_role("navigation", name="Settings").get_by_role("link", name="Audit log").click()
    page.get_by_label("Changes of").select_option("server")
    expect(page.get_by_role("group", name="Changes").get_by_text("bob").first).to_be_visible()


@pytest.mark.parametrize("who", ["reader", "contributor", "owner"])
def test_settings_show_what_a_role_may_do(studio: Studio, who: str) -> None:
    page = studio.open("settings", who)
    parts = page.get_by_role("navigation", name="Settings").get_by_role("link")
    expected = ["Account", "Tokens", "Members", "Quotas", "Secrets", "Notifications", "Retention"]
    expected += ["Audit log"] if who == "owner" else []
    expect(parts).to_have_text(expected)
    expect(page.get_by_text(re.compile(f"^{who.capitalize()} of team"))).to_be_visible()
    page.goto(f"/w/{WORKSPACE}/settings/users")
    expect(page.get_by_text("There are no such settings, or you may not see them.")).to_be_visible()
    page.goto(f"/w/{WORKSPACE}/settings/members")
    expect(page.get_by_role("row", name="contributor")).to_be_visible()
    expect(page.get_by_role("button", name="Give the role")).to_have_count(1 if who == "owner" else 0)


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_no_serious_finding_of_axe(studio: Studio, theme: str, width: int) -> None:
    page = studio.open("settings", theme="dark" if theme == "dark" else "light", width=width)
    for path, seen in (
        ("settings", "Sign out"),
        ("settings/tokens", "Last use"),
        ("settings/members", "Give the role"),
        ("settings/quotas", "Set a quota"),
        ("settings/secrets", "Keep the secret"),
        ("settings/notifications", "Add a channel"),
        ("settings/retention", "Add a rule"),
        ("settings/users", "Identity"),
        ("settings/audit", "Result"),
        ("environments", "Builds"),
        (f"environments/training {ATTACK}", "Definition"),
        ("data", "Datastores"),
        ("data/datastores/workspaceblobstore/customers", "Changed"),
        (f"data/datasets/{NAME}/1", "Its beginning"),
    ):
        page.goto(f"/w/{WORKSPACE}/{path}")
        expect(page.get_by_text(seen).or_(page.get_by_label(seen)).first).to_be_visible()
        studio.check_accessibility(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_signing_out_ends_the_session(studio: Studio) -> None:
    page = studio.open("settings", "reader")
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(re.compile("/login"))
    assert page.request.get("/api/v1/me").status == 401


def test_empty_pages_say_what_to_do(studio: Studio) -> None:
    studio.server.create_workspace("empty")
    page = studio.open("/w/empty/environments")
    expect(page.get_by_text("environment.register(workspace)")).to_be_visible()
    page.get_by_role("link", name="Data", exact=True).click()
    expect(page.get_by_text("dataset.register(workspace")).to_be_visible()
    page.get_by_role("link", name="workspaceblobstore").click()
    expect(page.get_by_text("This datastore has no files yet.")).to_be_visible()
