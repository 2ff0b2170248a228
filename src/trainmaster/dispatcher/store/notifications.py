"""Channels, and notifications that have to be delivered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update

from trainmaster.dispatcher.store.record_rows import RecordRows
from trainmaster.dispatcher.store.schema import channels, deliveries, run_ends
from trainmaster.dispatcher.store.transactions import Repository, reads, writes
from trainmaster.dispatcher.store.values import clean, dump
from trainmaster.shared.notifications import Channel

_ROWS = RecordRows(Channel, frozenset({"events"}))
_SHOWN = 2000


@dataclass(frozen=True)
class Delivery:
    """A notification on its way to one channel."""

    id: str
    channel: str
    message: Mapping[str, Any]
    created_at: float
    failures: int = 0
    next_at: float = 0.0


class Notifications(Repository):
    """The channels of a workspace, and what they have not been told yet."""

    # Channels

    @reads
    def list_channels(self, connection: Connection) -> list[Channel]:
        """All channels, by name."""
        rows = connection.execute(select(channels).order_by(channels.c.name)).mappings()
        return [_ROWS.record_of(row) for row in rows]

    @reads
    def get_channel(self, connection: Connection, name: str) -> Channel | None:
        """The channel with this name."""
        row = connection.execute(select(channels).where(channels.c.name == name)).mappings().one_or_none()
        return None if row is None else _ROWS.record_of(row)

    @reads
    def get_sealed_key(self, connection: Connection, name: str) -> str:
        """The encrypted key of a channel; empty if it has none."""
        return str(connection.execute(select(channels.c.sealed).where(channels.c.name == name)).scalar() or "")

    @writes
    def put_channel(self, connection: Connection, channel: Channel, sealed: str) -> None:
        """Add a channel, or replace the one with its name."""
        connection.execute(delete(channels).where(channels.c.name == channel.name))
        connection.execute(insert(channels).values(**_ROWS.columns_of(channel), sealed=sealed))

    @writes
    def delete_channel(self, connection: Connection, name: str) -> None:
        """Delete a channel, with what it has not been told yet."""
        connection.execute(delete(channels).where(channels.c.name == name))
        connection.execute(delete(deliveries).where(deliveries.c.channel == name))

    # Deliveries

    @reads
    def list_ends(self, connection: Connection, most: int) -> list[tuple[int, str]]:
        """The oldest ends of runs that no delivery was planned for: their number, and the id of the run."""
        query = select(run_ends.c.seq, run_ends.c.run_id).order_by(run_ends.c.seq).limit(most)
        return [(seq, run_id) for seq, run_id in connection.execute(query)]

    @writes
    def plan(self, connection: Connection, ends: Sequence[int], planned: Sequence[Delivery]) -> None:
        """Replace ends of runs by their deliveries, in one transaction."""
        for each in planned:
            connection.execute(insert(deliveries).values(**_columns_of(each)))
        connection.execute(delete(run_ends).where(run_ends.c.seq.in_(list(ends))))

    @reads
    def list_deliveries(self, connection: Connection, most: int) -> list[Delivery]:
        """Those that are due first."""
        query = select(deliveries).order_by(deliveries.c.next_at, deliveries.c.id).limit(most)
        return [_delivery_of(row) for row in connection.execute(query).mappings()]

    @reads
    def count_waiting(self, connection: Connection) -> int:
        """How many ends and deliveries there are."""
        counts = [connection.execute(select(func.count()).select_from(each)).scalar_one() for each in _WAITING]
        return int(sum(counts))

    @writes
    def finish(self, connection: Connection, delivery: Delivery, at: float, error: str) -> None:
        """Forget a delivery that has succeeded, or that is given up because of an error."""
        connection.execute(delete(deliveries).where(deliveries.c.id == delivery.id))
        self.note_result(delivery.channel, at, error)

    @writes
    def postpone(self, connection: Connection, delivery: Delivery, next_at: float, error: str) -> None:
        """Try a delivery again later."""
        changes = {"failures": delivery.failures + 1, "next_at": next_at, "error": clean(error[:_SHOWN])}
        connection.execute(update(deliveries).where(deliveries.c.id == delivery.id).values(**changes))
        connection.execute(
            update(channels).where(channels.c.name == delivery.channel).values(last_error=clean(error[:_SHOWN]))
        )

    @writes
    def note_result(self, connection: Connection, channel: str, at: float, error: str) -> None:
        """Keep how the last delivery to a channel ended."""
        changes: dict[str, Any] = {"last_error": clean(error[:_SHOWN])}
        if not error:
            changes["last_sent_at"] = at
        connection.execute(update(channels).where(channels.c.name == channel).values(**changes))


_WAITING = (run_ends, deliveries)


def _columns_of(delivery: Delivery) -> dict[str, Any]:
    return {
        "id": delivery.id,
        "channel": delivery.channel,
        "message": clean(dump(delivery.message)),
        "created_at": delivery.created_at,
        "failures": delivery.failures,
        "next_at": delivery.next_at,
        "error": "",
    }


def _delivery_of(row: RowMapping) -> Delivery:
    message = json.loads(row["message"])
    return Delivery(row["id"], row["channel"], message, row["created_at"], row["failures"], row["next_at"])
