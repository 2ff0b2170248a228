"""Slurm: every attempt of a run is one batch job, and its agents are that job's tasks (docs/guide/slurm.md).

options.py     from the nodes of a run to the job that Slurm is asked for
commands.py    Slurm's commands, called
states.py      what Slurm says of jobs, and what that means for a run
job.py         one attempt of a run as a job: what is noted of it, and what its agents wrote
accounting.py  what sacct knows, where there is accounting
engine.py      the engine, for one Slurm
site.py        from where it is used: this machine is a login node, or one is reached over SSH

And from a laptop, with the help of `engines/ssh/`:

login.py       a login node as a site
desk.py        the connection that is kept: commands, and what comes back (`job/helper/command_channel.py`)
delivery.py    the connection on which things are brought
travel.py      the plans of a run as files at the cluster
fetched.py     what came back, into the run's folder here
asking.py      whether a cluster can be used from here
distant.py     the engine: hands every run to the cluster that its target names
"""
