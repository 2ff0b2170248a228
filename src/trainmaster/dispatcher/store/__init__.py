"""The truth of a workspace: experiments, runs, metrics, targets, datastores and facts."""

from trainmaster.dispatcher.store.store import Store

__all__ = ["Store"]
