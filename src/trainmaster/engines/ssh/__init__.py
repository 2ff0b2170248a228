"""Hosts over SSH: each node of a target is a host (docs/guide/ssh.md). `engines/remote/` has the connections.

passwords.py   passwords and passphrases, given to ssh when it asks
query.py       what the hosts of a target are, without a run
engine.py      the engine
"""
