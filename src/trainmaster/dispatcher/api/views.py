"""Operations on saved views. Who may see and change them is decided by the routes of the server."""

from __future__ import annotations

import builtins
import re
import time

from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.store import Store
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import SavedView

MOST_VIEWS = 200
"""Of one owner."""
_LONGEST_NAME = 200
_LONGEST_QUERY = 8000
_PAGE = re.compile(r"[a-z][a-z-]{0,40}")


class ViewOperations:
    """Operations on saved views."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @operation("views.list", from_store=True)
    def list(self, owner: str, page: str | None = None) -> builtins.list[SavedView]:
        """The views of an owner and the shared ones of others, by page and name."""
        return self._store.views.list_for(owner, page)

    @operation("views.get", from_store=True)
    def get(self, id: str) -> SavedView | None:
        """The view with this id, or nothing."""
        return self._store.views.get(id)

    @operation("views.put")
    def put(self, owner: str, page: str, name: str, query: str, is_shared: bool = False) -> SavedView:
        """Save a view. It replaces the view of the same owner, page and name."""
        name = name.strip()
        if not _PAGE.fullmatch(page):
            raise UserErrorException(f"'{page[:60]}' is not a page", hint="Pages have names such as runs or compare.")
        if not name or len(name) > _LONGEST_NAME or not name.isprintable():
            raise UserErrorException(f"the name of a view has 1 to {_LONGEST_NAME} visible characters")
        if len(query) > _LONGEST_QUERY:
            raise UserErrorException(f"a view has at most {_LONGEST_QUERY} characters, not {len(query)}")
        mine = [view for view in self._store.views.list_for(owner) if view.owner == owner]
        is_new = not any((view.page, view.name) == (page, name) for view in mine)
        if is_new and len(mine) >= MOST_VIEWS:
            raise UserErrorException(f"you have {MOST_VIEWS} views already", hint="Delete some of them.")
        return self._store.views.put(SavedView("", owner, page, name, query, is_shared), at=time.time())

    @operation("views.delete")
    def delete(self, id: str) -> None:
        """Delete a view; one that is not there is ignored."""
        self._store.views.delete(id)
