"""Slurm: every attempt of a run is one batch job, and its agents are tasks of that job (docs/guide/slurm.md).

options.py     from the nodes of a run to the options and the script of its job
commands.py    Slurm's commands
states.py      what Slurm says about jobs, and what that means for a run
reasons.py     why a job waits, in words
job.py         one attempt of a run as a job: what is noted of it, and what its agents wrote
accounting.py  what sacct knows, if the site has accounting
pace.py        how often squeue runs
cluster.py     one Slurm: submits jobs, and follows them by their files and one squeue for all of them
site.py        where the commands of a cluster run: here, or on a login node
query.py       whether a cluster can be used, without a run
engine.py      the engine, for one or several clusters

With a login node that is reached over SSH (`engines/remote/`):

login.py            the login node as a site
command_channel.py  the connection that stays open: commands, and files that come back (`job/helper/command_channel.py`)
job_files.py        the plans of a run as files on the cluster
"""
