"""What the ranks of a node and the node itself use: processor, memory, disk, network and GPUs.

The agent forks a process that measures them every few seconds, while the run lasts, and appends them to a journal of
its own. A separate process keeps the agent free: the driver of a broken GPU may not answer for minutes.
"""
