"""What engines that reach other machines over SSH have in common (docs/guide/ssh.md). Hosts need only Python 3.6.

host.py          one host, and the command line that reaches it
ssh_errors.py    what ssh prints, as errors that say what to do
connection.py    a connection: frames to and from `job/helper/`, which it sends first
program.py       `job/helper/` as one text, which is all that is sent of it
retrying.py      pauses and retries while a host cannot be reached
clocks.py        times of hosts whose clocks differ from ours
contents.py      files and folders by digest; only those that a host lacks are sent
transfers.py     contents that another connection is sending now
environments.py  environments, at another path and on another Python
conda.py         environments of conda packages at another path
data.py          the data of a run: what a host needs, at which paths, and what comes back
upload.py        everything that a run needs on a host
upload_pool.py   connections for uploads, shared by the runs on one host
on_demand.py     files that a script requests while it runs
plans.py         a plan of this machine as a plan of a host
mirror.py        what comes back, into the run's folder here
messages.py      what a host must hear, sent again over the next connection
cleanup.py       runs whose remains on a host have still to be removed
"""
