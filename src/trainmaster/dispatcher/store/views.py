"""Views that somebody saved: pages of the studio with their filters and columns."""

from __future__ import annotations

from dataclasses import asdict, replace
from uuid import uuid4

from sqlalchemy import Connection, delete, insert, or_, select, update

from trainmaster.dispatcher.store.schema import views
from trainmaster.dispatcher.store.transactions import Repository, reads, writes
from trainmaster.dispatcher.store.values import clean
from trainmaster.shared.records import SavedView

_COLUMNS = (
    views.c.id,
    views.c.owner,
    views.c.page,
    views.c.name,
    views.c.query,
    views.c.is_shared,
    views.c.created_at,
    views.c.modified_at,
)


class Views(Repository):
    """The saved views of a workspace."""

    @reads
    def list_for(self, connection: Connection, owner: str, page: str | None = None) -> list[SavedView]:
        """The views of an owner and the shared ones of others, by name."""
        chosen = select(*_COLUMNS).where(or_(views.c.owner == owner, views.c.is_shared))
        if page is not None:
            chosen = chosen.where(views.c.page == page)
        rows = connection.execute(chosen.order_by(views.c.page, views.c.name, views.c.owner))
        return [SavedView(*row) for row in rows]

    @reads
    def get(self, connection: Connection, view_id: str) -> SavedView | None:
        """The view with this id."""
        row = connection.execute(select(*_COLUMNS).where(views.c.id == view_id)).first()
        return SavedView(*row) if row else None

    @writes
    def put(self, connection: Connection, view: SavedView, at: float) -> SavedView:
        """Add a view, or replace that of the same owner, page and name. Its id and times are given here."""
        view = replace(view, name=clean(view.name), query=clean(view.query))
        same = (views.c.owner == view.owner) & (views.c.page == view.page) & (views.c.name == view.name)
        known = connection.execute(select(views.c.id, views.c.created_at).where(same)).first()
        if known is not None:
            kept = replace(view, id=known[0], created_at=known[1], modified_at=at)
            changed = {"query": kept.query, "is_shared": kept.is_shared, "modified_at": at}
            connection.execute(update(views).where(views.c.id == kept.id).values(**changed))
            return kept
        new = replace(view, id=uuid4().hex, created_at=at, modified_at=at)
        connection.execute(insert(views), asdict(new))
        return new

    @writes
    def delete(self, connection: Connection, view_id: str) -> None:
        """Delete a view; one that is not there is ignored."""
        connection.execute(delete(views).where(views.c.id == view_id))
