"""Scoring services: deployed, watched, restarted and deleted.

A service is a supervisor (`scoring/supervisor`) that runs without a dispatcher. The dispatcher prepares what it needs,
starts it, and restarts it if it was killed. Therefore a dispatcher does not end while there are services. If the
dispatcher is killed, the next client starts another one, which continues.
"""

from trainmaster.dispatcher.services.operations import Services

__all__ = ["Services"]
