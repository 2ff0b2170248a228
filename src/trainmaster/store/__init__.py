"""The truth of a workspace: experiments, runs, metrics, targets, datastores and facts."""

from trainmaster.store.store import Store

__all__ = ["Store"]
