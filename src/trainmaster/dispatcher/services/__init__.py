"""Scoring services: brought up, watched, brought back, taken down.

A service is a supervisor (`scoring/supervisor`) that needs no dispatcher. What the dispatcher does for it: make what
it needs, start it, and start it again if it was killed. So a dispatcher stays as long as there are services; one that
is killed is replaced by the next client's, which goes on where it ended.
"""

from trainmaster.dispatcher.services.operations import Services

__all__ = ["Services"]
