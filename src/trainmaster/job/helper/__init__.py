"""The helper: our program at the other end of an SSH connection. It receives files, starts agents, and reports on them.

messages.py         requests and answers
connection.py       frames in, frames out
safe_names.py       which names and paths may come from outside
files.py            files and folders
machine.py          properties of the host
agents.py           starts, claims and ends agents
job_requests.py     requests of scripts to their workspace, and the answers
reporting.py        reports what is written to the folder of a run
watching.py         watches one node of a run on this host
command_channel.py  at a login node: runs commands, and watches many runs at once
serving.py          answers requests

The program is sent over the connection itself (`engines/remote/program.py`), so the host needs only Python 3.6. There
it is a separate package called `helper`: hence the relative imports, and its own functions for files. It is not part
of the kit, because the kit may come from an older Trainmaster than the engine that sends requests. Only what deals
with agents uses the kit, which is sent first.
"""
