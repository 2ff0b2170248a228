"""Hosts that are reached over SSH. Nothing has to be installed there but Python 3.6; see docs/guide/ssh.md.

host.py        one host, and the command line that reaches it
passwords.py   passwords and passphrases, given to ssh when it asks
complaints.py  what ssh says, as an error with a fix
asking.py      what the hosts of a target are, without a run
session.py     a connection: frames to and from `job/helper/`, which it brings along
program.py     `job/helper/` as one text, which is all that is sent of it
cargo.py       what has to travel: the kit, the code, the environment, data; only what is not there
data.py        under which paths the data of a run is there, and what comes back
lending.py     files that a script asks for while it runs
patience.py    work at a host that may be out of reach for a while
plans.py       a plan of this machine as one of that host
mpi.py         mpirun on the first host, its daemons started by our agents on the others
starting.py    from the plans of a run to its agents on hosts
left.py        what stayed on hosts that could not be reached
mirror.py      what comes back, into the run's folder here
link.py        one node of one run: started, watched, taken up again when the connection drops
engine.py      the engine
"""
