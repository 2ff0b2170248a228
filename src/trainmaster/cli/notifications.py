"""`trainmaster notify add`, `list`, `test`, `remove` and `smtp`."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from trainmaster.cli import exits
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.output import Listing, show_facts, show_result
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.identity import user_name
from trainmaster.sdk.display.describing import iso
from trainmaster.sdk.display.screen import note, say_json
from trainmaster.sdk.display.table import Column
from trainmaster.sdk.display.text import first_line, moment
from trainmaster.sdk.run.channels import check_channels
from trainmaster.shared.notifications import EVENTS, WHOLE_WORKSPACE, Channel, SmtpSettings
from trainmaster.shared.serialization import from_plain

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_KINDS = ("command", "webhook", "email")
_WORDS = {"canceled": "were canceled"}


def add_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="a name for the channel")
    kind = parser.add_argument_group("how (one of)")
    kind.add_argument("--webhook", metavar="URL", help="send JSON to this address with POST")
    kind.add_argument("--email", metavar="ADDRESSES", help="send e-mail to these addresses; 'notify smtp' comes first")
    kind.add_argument("--command", metavar="COMMAND", help="run this command on the dispatcher's machine")
    parser.add_argument("--sign", action="store_true", help="sign webhooks with a key, which is typed or piped in")
    parser.add_argument("--on", metavar="EVENTS", help=f"some of {','.join(EVENTS)} (default: all)")
    parser.add_argument("-e", "--experiment", metavar="NAME", help="only runs of this experiment")
    parser.add_argument("--mine", action="store_true", help="only runs that you submit")
    parser.add_argument("--only-chosen", action="store_true", help="only runs that name the channel")


def add(options: Options) -> int:
    """Be told when runs end, fail or hang. The channel hears of all runs without a parent from now on.

    A run names channels with 'submit --notify NAME', run.notify("NAME") or the tag notify=NAME; it is then reported
    even if the channel is --only-chosen, of another experiment, or the run is a child. A channel with the same name is
    replaced. On a server, contributors may add webhooks and e-mail for their own runs (--mine), and owners of the
    workspace everything.

    JSON: {"name", "kind", "address", "owner", "events", "experiment", "only_chosen", "is_signed", "created_by",
    "created_at", "last_sent_at", "last_error"}.

      trainmaster notify add team --webhook https://example.org/hook --sign --on failed,hung
      trainmaster notify add me --email ann@example.org --mine
      trainmaster notify add desk --command 'notify-send "$NOTIFICATION_NAME $NOTIFICATION_STATUS"'
    """
    given = {kind: getattr(options, kind) for kind in _KINDS if getattr(options, kind) is not None}
    if len(given) != 1:
        raise UserErrorException(
            "a channel is exactly one of --webhook, --email and --command", hint="For example --email ann@example.org."
        )
    ((kind, address),) = given.items()
    arguments = {
        "name": options.name,
        "kind": kind,
        "address": address,
        "events": _read_events(options.on),
        "experiment": options.experiment or "",
        "only_chosen": options.only_chosen,
        "key": _read_secret("Key that signs the webhooks") if options.sign else "",
    }
    workspace = open_workspace(options.workspace)
    if options.mine:
        answer = workspace.connection.call("notifications.put_own", owner=user_name(), **arguments)
    else:
        answer = workspace.connection.call("notifications.put", created_by=user_name(), **arguments)
    channel = from_plain(Channel, answer)
    if sys.stderr.isatty():
        note(f"'trainmaster notify test {channel.name}' tries it.")
    return show_result(options, _as_json(channel), f"Channel '{channel.name}' is told of {_describe(channel)}.")


def list_channels(options: Options) -> int:
    """List the channels that tell of runs, and how their last notification ended.

    JSON: a list of channels, as in 'notify add'.

      trainmaster notify list
    """
    now = time.time()
    listing: Listing[Channel] = Listing(
        columns=(
            Column("NAME"),
            Column("KIND"),
            Column("ADDRESS", flexible=True),
            Column("TOLD OF", flexible=True),
            Column("LAST SENT", right=True),
            Column("ERROR", flexible=True, style=lambda text: "red"),
        ),
        row=lambda channel: (
            channel.name,
            channel.kind + (" (signed)" if channel.is_signed else ""),
            first_line(channel.address),
            _describe(channel),
            "" if channel.last_sent_at is None else moment(channel.last_sent_at, now),
            first_line(channel.last_error),
        ),
        json=_as_json,
        empty="There are no channels. 'trainmaster notify add NAME --email ADDRESS' adds one.",
    )
    return listing.show(_list(open_workspace(options.workspace)), options)


def test_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the channel's name")


def test(options: Options) -> int:
    """Send one notification to a channel now, and say whether it was delivered.

    JSON: {"name", "is_delivered", "error"}. The exit code is 5 if it was not delivered.

      trainmaster notify test team
    """
    workspace = open_workspace(options.workspace)
    channel = _find(workspace, options.name)
    operation = "notifications.test" if channel.owner == WHOLE_WORKSPACE else "notifications.test_own"
    result = workspace.connection.call(operation, name=channel.name, **_owner_of(channel))
    if options.json:
        say_json({"name": channel.name, **result})
    elif result["is_delivered"]:
        show_result(options, None, f"Channel '{channel.name}' was told.")
    else:
        note(f"Channel '{channel.name}' could not be told: {result['error']}", "red")
    return exits.OK if result["is_delivered"] else exits.UNUSABLE


def remove_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the channel's name")


def remove(options: Options) -> int:
    """Remove a channel, with notifications that were not delivered yet.

    JSON: {"deleted": name}.

      trainmaster notify remove team
    """
    workspace = open_workspace(options.workspace)
    channel = _find(workspace, options.name)
    operation = "notifications.delete" if channel.owner == WHOLE_WORKSPACE else "notifications.delete_own"
    workspace.connection.call(operation, name=channel.name, **_owner_of(channel))
    return show_result(options, {"deleted": channel.name}, f"Channel '{channel.name}' is removed.")


def smtp_arguments(parser: Parser) -> None:
    parser.add_argument("host", metavar="HOST", nargs="?", help="the mail server; without HOST, show the settings")
    parser.add_argument("--port", metavar="N", type=int, help="default: 587, or 465 with tls, or 25 without encryption")
    parser.add_argument(
        "--security", choices=("starttls", "tls", "none"), default="starttls", help="encryption (default: starttls)"
    )
    parser.add_argument("--user", metavar="NAME", default="", help="sign in with this name; the password is typed")
    parser.add_argument("--sender", metavar="ADDRESS", help="the address that notifications come from")


def smtp(options: Options) -> int:
    """Set the mail server that sends e-mail of the workspace, or show it. The password is typed or piped in, stored
    encrypted, and never shown.

    JSON: {"host", "port", "security", "user", "sender"}, or null.

      trainmaster notify smtp mail.example.org --user robot --sender robot@example.org
    """
    workspace = open_workspace(options.workspace)
    if options.host is None:
        return _show_smtp(workspace.connection.call("notifications.smtp"), options)
    if not options.sender:
        raise UserErrorException("--sender is missing", hint="For example --sender robot@example.org.")
    port = options.port or {"starttls": 587, "tls": 465, "none": 25}[options.security]
    password = _read_secret(f"Password of {options.user}") if options.user else ""
    answer = workspace.connection.call(
        "notifications.set_smtp",
        host=options.host,
        sender=options.sender,
        port=port,
        security=options.security,
        user=options.user,
        password=password,
    )
    settings = from_plain(SmtpSettings, answer)
    return show_result(options, asdict(settings), f"E-mail is sent by {settings.host}, port {settings.port}.")


def _show_smtp(answer: dict[str, Any] | None, options: Options) -> int:
    if options.json:
        say_json(answer)
    elif answer is None:
        note("No mail server is set. 'trainmaster notify smtp HOST --sender ADDRESS' sets one.")
    else:
        show_facts([(name, str(value)) for name, value in answer.items()])
    return exits.OK


def _read_events(text: str | None) -> list[str]:
    given = ",".join(EVENTS) if text is None else text
    words = [word.strip().lower() for word in given.split(",") if word.strip()]
    unknown = next((word for word in words if word not in EVENTS), None)
    if unknown is not None:
        raise UserErrorException(f"--on {unknown!r} is not an event of a run", hint=f"Events: {', '.join(EVENTS)}.")
    return words


def _read_secret(what: str) -> str:
    """Never from the command line: every user of this machine could read it there."""
    if sys.stdin.isatty():
        from getpass import getpass

        value = getpass(f"{what}: ")
    else:
        value = sys.stdin.read().removesuffix("\n")
    if not value:
        raise UserErrorException(f"{what[0].lower()}{what[1:]} is empty", hint="Type it, or pipe it in.")
    return value


def _find(workspace: Workspace, name: str) -> Channel:
    check_channels(workspace, [name])
    return next(channel for channel in _list(workspace) if channel.name == name)


def _list(workspace: Workspace) -> list[Channel]:
    return [from_plain(Channel, each) for each in workspace.connection.call("notifications.list")]


def _owner_of(channel: Channel) -> dict[str, str]:
    return {} if channel.owner == WHOLE_WORKSPACE else {"owner": channel.owner}


def _describe(channel: Channel) -> str:
    """
    >>> _describe(Channel("a", "email", "a@b.c", owner="ann", events=("failed", "hung"), experiment="mnist"))
    "runs of ann in experiment 'mnist' that failed or hung"
    >>> _describe(Channel("a", "email", "a@b.c", only_chosen=True))
    'chosen runs that ended'
    """
    whose = f" of {channel.owner}" if channel.owner else ""
    where = f" in experiment '{channel.experiment}'" if channel.experiment else ""
    what = (
        "ended"
        if set(channel.events) == set(EVENTS)
        else " or ".join(_WORDS.get(each, each) for each in channel.events)
    )
    return f"{'chosen runs' if channel.only_chosen else 'runs'}{whose}{where} that {what}"


def _as_json(channel: Channel) -> dict[str, Any]:
    plain = asdict(channel)
    return {
        **plain,
        "events": list(channel.events),
        "created_at": iso(channel.created_at),
        "last_sent_at": iso(channel.last_sent_at),
    }
