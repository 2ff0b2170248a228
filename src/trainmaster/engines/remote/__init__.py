"""What engines that reach other machines have in common (docs/guide/ssh.md). Hosts need only Python 3.6.

channel.py       what a connection needs of the way to a host, whatever it is
connection.py    a connection: frames to and from `job/helper/`, which it sends first
host.py          one host that is reached by ssh, and the command line for it
ssh_channel.py   the way to it: an ssh process
ssh_errors.py    what ssh prints, as errors that say what to do
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
starting.py      from the plans of a run to what each host gets
node.py          one node of one run: started, watched, and found again after a lost connection
hosted_attempt.py  an attempt of a run on hosts: all of its nodes
mpi.py           mpirun on the first host; our agents on the others start its daemons
cleanup.py       runs whose remains on a host have still to be removed
"""
