"""What runs at the other end of an SSH connection: it takes files in, starts agents, and tells what becomes of them.

line.py      the connection: frames in, frames out
names.py     which names and paths may come from outside
files.py     files and folders
machine.py   what the host is and has
agents.py    agents: started, claimed, ended
letters.py   what scripts ask their workspace, and the answers
telling.py   tells what is written to the folder of a run
watching.py  watches one node of a run on this host
desk.py      at a login node: commands, and many runs watched at once
serving.py   answers requests

Sent over the connection itself (`engines/ssh/program.py`), so that nothing has to be there but Python 3.6. There it is
a package of its own, called `ferry`: hence the relative imports. It is not taken from the kit, which may be of an older
Trainmaster than the one that asks; only what knows agents is, and the kit is the first thing that travels.
"""
