"""Hosts that are reached over SSH. Nothing has to be installed there but Python 3.6; see docs/ssh.md.

host.py        one host, and the command line that reaches it
complaints.py  what ssh says, as an error with a fix
session.py     a connection: frames to and from `node/ferry/`, which it brings along
program.py     `node/ferry/` as one text, which is all that is sent of it
cargo.py       what has to travel: the kit, the code, the environment, data; only what is not there
plans.py       a plan of this machine as one of that host
mirror.py      what comes back, into the run's folder here
link.py        one node of one run: started, watched, taken up again when the connection drops
engine.py      the engine
"""
