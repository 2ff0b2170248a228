"""The first process of a pod. Standard library, Python 3.6: images need nothing of ours.

first_process.py  if files come over the API server: keeps the pod alive, passes signals on to the agent, and ends when
                  everything has been fetched. Its text is the program in the pod's command
shared_folder.py  if the pod sees the run's folder: meets the other pods of the run, then becomes the agent
variables.py      the variables of processes on another machine than the submitter's
"""
