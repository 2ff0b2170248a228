"""What runs at the other end of an SSH connection: it takes files in, starts agents, and tells what becomes of them.

connection.py the connection: frames in, frames out
names.py     which names and paths may come from outside
files.py     files and folders
machine.py   what the host is and has
agents.py    agents: started, claimed, ended
job_requests.py what scripts ask their workspace, and the answers
reporting.py tells what is written to the folder of a run
watching.py  watches one node of a run on this host
command_channel.py  at a login node: commands, and many runs watched at once
serving.py   answers requests

Sent over the connection itself (`engines/ssh/program.py`), so the host needs nothing but Python 3.6. There it is a
package of its own, called `helper`: hence the relative imports. It does not come from the kit, which may be of an older
Trainmaster than the one that asks. Only what knows agents does, and the kit is the first thing that is sent.
"""
