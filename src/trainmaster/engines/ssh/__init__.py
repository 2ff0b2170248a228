"""Hosts over SSH: each node of a target is a host (docs/guide/ssh.md). `engines/remote/` has the connections.

passwords.py   passwords and passphrases, given to ssh when it asks
query.py       what the hosts of a target are, without a run
mpi.py         mpirun on the first host; our agents on the others start its daemons
starting.py    from the plans of a run to what each host gets
node.py        one node of one run: started, watched, and found again after a lost connection
engine.py      the engine
"""
