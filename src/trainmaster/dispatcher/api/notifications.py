"""Operations on notifications."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.notifications import mail, webhooks
from trainmaster.dispatcher.notifications.outbox import SMTP_FACT, Outbox
from trainmaster.dispatcher.operation import operation
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.notifications import (
    EVENTS,
    WHOLE_WORKSPACE,
    Channel,
    DeliveryResult,
    Event,
    Kind,
    Security,
    SmtpSettings,
)
from trainmaster.shared.serialization import from_plain

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", re.ASCII)
_HOST = re.compile(r"[A-Za-z0-9.:_-]{1,255}", re.ASCII)
_LONGEST = 4000
_LONGEST_KEY = 1000


class NotificationOperations:
    """Channels, and the settings of e-mail. Over HTTP, users change only channels that are for their own runs."""

    def __init__(self, context: Context, outbox: Outbox) -> None:
        self._store = context.store
        self._secrets = context.secrets
        self._outbox = outbox

    @operation("notifications.put")
    def put(
        self,
        name: str,
        kind: Kind,
        address: str,
        events: Sequence[Event] = EVENTS,
        experiment: str = "",
        only_chosen: bool = False,
        key: str = "",
        created_by: str = "",
    ) -> Channel:
        """Add a channel for the runs of all users, or replace the one with this name. `key` signs what it sends."""
        channel = Channel(
            name,
            kind,
            address,
            events=_check_events(events),
            experiment=experiment,
            only_chosen=only_chosen,
            created_by=created_by,
        )
        return self._put(channel, key)

    @operation("notifications.put_own")
    def put_own(
        self,
        owner: str,
        name: str,
        kind: Kind,
        address: str,
        events: Sequence[Event] = EVENTS,
        experiment: str = "",
        only_chosen: bool = False,
        key: str = "",
    ) -> Channel:
        """Add a channel for the runs that a user submits, or replace the user's channel with this name."""
        if not owner:
            raise UserErrorException("the owner of a channel must be a user")
        channel = Channel(
            name,
            kind,
            address,
            owner,
            events=_check_events(events),
            experiment=experiment,
            only_chosen=only_chosen,
            created_by=owner,
        )
        return self._put(channel, key)

    @operation("notifications.list")
    def find(self, owner: str | None = None) -> list[Channel]:
        """The channels of the workspace and of a user; without `owner` those of all users. No answer has a key."""
        found = self._store.notifications.list_channels()
        return [each for each in found if owner is None or each.owner in (WHOLE_WORKSPACE, owner)]

    @operation("notifications.delete")
    def delete(self, name: str) -> None:
        """Remove a channel, with notifications that were not delivered yet."""
        self._delete(self._require(name, None))

    @operation("notifications.delete_own")
    def delete_own(self, owner: str, name: str) -> None:
        """Remove a channel of this user."""
        self._delete(self._require(name, owner))

    @operation("notifications.test")
    async def test(self, name: str) -> DeliveryResult:
        """Send one notification to a channel now, and say whether it was delivered."""
        return await self._test(self._require(name, None))

    @operation("notifications.test_own")
    async def test_own(self, owner: str, name: str) -> DeliveryResult:
        """The same for a channel of this user."""
        return await self._test(self._require(name, owner))

    @operation("notifications.set_smtp")
    def set_smtp(
        self,
        host: str,
        sender: str,
        port: int = 587,
        security: Security = "starttls",
        user: str = "",
        password: str = "",
    ) -> SmtpSettings:
        """Set the mail server of the workspace. The password is stored encrypted and never shown."""
        if not _HOST.fullmatch(host) or not 0 < port < 65536:
            raise UserErrorException(f"{host[:100]!r} with port {port} cannot be a mail server")
        if len(mail.check_addresses(sender)) != 1:
            raise UserErrorException("the sender must be one e-mail address")
        if user and security == "none":
            raise UserErrorException(
                "a password is not sent to a mail server without encryption", hint="Use starttls or tls."
            )
        settings = SmtpSettings(host, port, security, user, sender)
        sealed = self._secrets.seal(password) if user else ""
        self._store.facts.put(SMTP_FACT, {**asdict(settings), "sealed": sealed})
        return settings

    @operation("notifications.smtp")
    def get_smtp(self) -> SmtpSettings | None:
        """The mail server of the workspace, without its password."""
        kept: dict[str, Any] | None = self._store.facts.get(SMTP_FACT)
        if not kept:
            return None
        return from_plain(SmtpSettings, {name: value for name, value in kept.items() if name != "sealed"})

    def _put(self, channel: Channel, key: str) -> Channel:
        _check(channel, key, self._outbox)
        known = self._store.notifications.get_channel(channel.name)
        if known is not None and known.owner != channel.owner:
            raise UserErrorException(
                f"there is another channel '{channel.name}' in this workspace", hint="Choose another name."
            )
        sealed = self._secrets.seal(key) if key else ""
        made = from_plain(Channel, {**asdict(channel), "is_signed": bool(key), "created_at": time.time()})
        self._store.notifications.put_channel(made, sealed)
        self._outbox.channels_changed()
        return made

    def _delete(self, channel: Channel) -> None:
        self._store.notifications.delete_channel(channel.name)
        self._outbox.channels_changed()

    async def _test(self, channel: Channel) -> DeliveryResult:
        error = await self._outbox.test(channel)
        return DeliveryResult(not error, error)

    def _require(self, name: str, owner: str | None) -> Channel:
        found = self._store.notifications.get_channel(name)
        if found is None or (owner is not None and found.owner != owner):
            raise UserErrorException(
                f"there is no channel '{name[:100]}'", hint="'trainmaster notify list' lists the channels."
            )
        return found


def _check_events(events: Sequence[Event]) -> tuple[Event, ...]:
    if not events:
        raise UserErrorException("a channel needs at least one event", hint=f"Events: {', '.join(EVENTS)}.")
    return tuple(event for event in EVENTS if event in events)


def _check(channel: Channel, key: str, outbox: Outbox) -> None:
    if not _NAME.fullmatch(channel.name):
        raise UserErrorException(
            f"{channel.name[:60]!r} cannot be the name of a channel",
            hint="Use 1 to 63 letters, digits, dots, dashes or underscores, a letter or digit first.",
        )
    if not channel.address.strip() or len(channel.address) > _LONGEST or "\0" in channel.address:
        raise UserErrorException(f"the {channel.kind} of channel '{channel.name}' is empty or too long")
    if len(key) > _LONGEST_KEY or (key and channel.kind != "webhook"):
        raise UserErrorException("only a webhook is signed, with a key of at most 1,000 characters")
    if channel.kind == "email":
        mail.check_addresses(channel.address)
    elif channel.kind == "webhook":
        _check_host(str(webhooks.check_url(channel.address).hostname), outbox)


def _check_host(host: str, outbox: Outbox) -> None:
    """Refuses at once what is surely not allowed. Names are looked up when a notification is sent."""
    import ipaddress

    known = {"localhost": "127.0.0.1"}.get(host.lower().rstrip("."), host)
    try:
        ipaddress.ip_address(known)
    except ValueError:
        return
    if not outbox.reach.allows(known):
        raise UserErrorException(
            f"webhooks to {host} are not allowed on this server",
            cause="It is not a public address.",
            hint='The server\'s administrator can allow its network: "notification_networks" in server.json.',
        )
