"""Delivers notifications: planned when runs end, tried until they succeed, and kept over the death of a dispatcher."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.notifications import commands, mail, webhooks
from trainmaster.dispatcher.notifications.addresses import DeliveryError, Reach
from trainmaster.dispatcher.notifications.choosing import (
    choose_channels,
    event_of,
    make_message,
    make_subject,
    make_text,
)
from trainmaster.dispatcher.store.notifications import Delivery
from trainmaster.job.errors import TrainmasterError
from trainmaster.shared.notifications import Channel, SmtpSettings
from trainmaster.shared.records import TERMINAL, RunRecord
from trainmaster.shared.retry import pause_after
from trainmaster.shared.run_tokens import read_served
from trainmaster.shared.serialization import from_plain
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.dispatch")

SMTP_FACT = "notifications.smtp"

_PAGE = 100
_AT_ONCE = 4
_FIRST_PAUSE = 5.0
_LONGEST_PAUSE = 3600.0
# After so many failures, which take about five hours, a notification is given up.
_MOST_FAILURES = 14


class Outbox:
    """Plans and delivers the notifications of a workspace. A listener of `Watchers`."""

    def __init__(self, context: Context) -> None:
        self._folder = context.folder
        self._store = context.store
        self._secrets = context.secrets
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._sending: dict[str, asyncio.Task[None]] = {}
        # Of its own: a slow receiver must not take the threads that runs need.
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="notification")
        self._has_channels = bool(self._store.notifications.list_channels())
        self.is_busy = False
        """Whether notifications wait to be delivered."""

    def run_changed(self, record: RunRecord) -> None:
        """A run is in another state."""
        if self._has_channels and record.status in TERMINAL:
            self._wake()

    def run_reported(self, run_id: str) -> None:
        """A run may have logged something."""

    def channels_changed(self) -> None:
        """A channel was added or removed."""
        self._has_channels = bool(self._store.notifications.list_channels())
        self._wake()

    def resume(self) -> None:
        """Delivers what the last dispatcher has left."""
        if self._store.notifications.count_waiting():
            self._wake()

    async def close(self) -> None:
        """Stops to deliver. What is being sent may be sent again by the next dispatcher, with the same id."""
        tasks = [*self._sending.values(), *([self._task] if self._task is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def test(self, channel: Channel) -> str:
        """Sends a notification about no run, once. Returns what went wrong; empty if nothing did."""
        message = self._make_test(channel)
        error = await self._try(channel, Delivery(uuid.uuid4().hex, channel.name, message, time.time()))
        self._store.notifications.note_result(channel.name, time.time(), error)
        return error

    # Planning

    def _wake(self) -> None:
        self.is_busy = True
        self._news.set()
        if self._task is None or self._task.done():
            self._task = start_task("delivering notifications", self._work)

    async def _work(self) -> None:
        while True:
            self._news.clear()
            await asyncio.to_thread(self._plan)
            next_at = await self._start_due()
            if next_at is None and not self._sending and not self._news.is_set():
                self.is_busy = False
                return
            # The end of what is being sent is news, too.
            pause = None if next_at is None else max(0.0, next_at - time.time())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), pause)

    def _plan(self) -> None:
        """Turns ends of runs into deliveries."""
        channels = self._store.notifications.list_channels()
        while ends := self._store.notifications.list_ends(_PAGE):
            planned = [each for _, run_id in ends for each in self._make_deliveries(run_id, channels)]
            self._store.notifications.plan([seq for seq, _ in ends], planned)

    def _make_deliveries(self, run_id: str, channels: list[Channel]) -> list[Delivery]:
        record = self._store.runs.get(run_id)
        event = event_of(record) if record is not None else None
        if record is None or event is None:
            return []
        message = make_message(record, event, self._workspace_name(), self._find_page(record))
        now = time.time()
        return [
            Delivery(uuid.uuid4().hex, channel.name, message, now)
            for channel in choose_channels(channels, record, event)
        ]

    def _make_test(self, channel: Channel) -> dict[str, Any]:
        from trainmaster.shared.records import Status

        record = RunRecord("test", "test", Status.COMPLETED, time.time(), submitted_by=channel.created_by)
        return make_message(record, "test", self._workspace_name(), "")

    def _workspace_name(self) -> str:
        return str(self._folder.read_identity().get("name", ""))

    def _find_page(self, record: RunRecord) -> str:
        served = read_served(self._folder)
        return f"{served.address}/w/{served.name}/runs/{record.id}" if served and served.address else ""

    # Delivering

    async def _start_due(self) -> float | None:
        """Starts what is due, as far as there is room. Returns when the next delivery is due."""
        waiting = await asyncio.to_thread(self._store.notifications.list_deliveries, _PAGE + _AT_ONCE)
        now = time.time()
        for delivery in waiting:
            if delivery.id in self._sending:
                continue
            if delivery.next_at > now:
                return delivery.next_at
            if len(self._sending) >= _AT_ONCE:
                return None
            task = asyncio.get_running_loop().create_task(self._deliver(delivery))
            self._sending[delivery.id] = task
        return None

    async def _deliver(self, delivery: Delivery) -> None:
        try:
            channel = self._store.notifications.get_channel(delivery.channel)
            error = await self._try(channel, delivery) if channel is not None else ""
            await asyncio.to_thread(self._note, delivery, error)
        except Exception:
            # The store is not there for now. The delivery stays as it is; it may be sent twice.
            log.exception("notification %s", delivery.id)
            await asyncio.sleep(_first_pause())
        finally:
            del self._sending[delivery.id]
            self._news.set()

    def _note(self, delivery: Delivery, error: str) -> None:
        now = time.time()
        if error and delivery.failures + 1 < _MOST_FAILURES:
            pause = pause_after(delivery.failures + 1, _first_pause(), _LONGEST_PAUSE)
            self._store.notifications.postpone(delivery, now + pause, error)
            return
        if error:
            log.warning("notification %s to %s is given up: %s", delivery.id, delivery.channel, error)
        self._store.notifications.finish(delivery, now, error)

    async def _try(self, channel: Channel, delivery: Delivery) -> str:
        """Sends once. Returns what went wrong; empty if nothing did."""
        try:
            await self._send(channel, delivery)
        except DeliveryError as error:
            log.info("notification %s to %s: %s", delivery.id, channel.name, error)
            return str(error)
        except (TrainmasterError, OSError) as error:
            return f"the notification could not be sent: {error}"
        return ""

    async def _send(self, channel: Channel, delivery: Delivery) -> None:
        message = {"id": delivery.id, **delivery.message}
        body = json.dumps(message, ensure_ascii=False).encode()
        loop = asyncio.get_running_loop()
        if channel.kind == "command":
            await commands.send(channel.address, commands.make_variables(delivery.id, message), body)
        elif channel.kind == "webhook":
            post = webhooks.Post(channel.address, body, delivery.id, int(time.time()), self._read_key(channel))
            await loop.run_in_executor(self._threads, webhooks.send, post, self.reach)
        else:
            settings, password = self._read_smtp()
            recipients = mail.check_addresses(channel.address)
            subject, text = make_subject(message), make_text(message)
            letter = mail.make_mail(subject, text, settings.sender, recipients, delivery.id)
            await loop.run_in_executor(self._threads, mail.send, letter, settings, password, self.reach)

    def _read_key(self, channel: Channel) -> str:
        sealed = self._store.notifications.get_sealed_key(channel.name)
        return self._secrets.unseal(sealed, f"the key of channel '{channel.name}'") if sealed else ""

    def _read_smtp(self) -> tuple[SmtpSettings, str]:
        kept: Mapping[str, Any] | None = self._store.facts.get(SMTP_FACT)
        if not kept:
            raise DeliveryError("no mail server is set: 'trainmaster notify smtp HOST' sets one")
        settings = from_plain(SmtpSettings, {name: value for name, value in kept.items() if name != "sealed"})
        sealed = str(kept.get("sealed") or "")
        return settings, self._secrets.unseal(sealed, "the password of the mail server") if sealed else ""

    @property
    def reach(self) -> Reach:
        """The addresses that notifications may be sent to."""
        served = read_served(self._folder)
        return Reach() if served is None else Reach(True, served.networks)


def _first_pause() -> float:
    return float(os.environ.get("TRAINMASTER_NOTIFICATION_RETRY_SECONDS", _FIRST_PAUSE))
