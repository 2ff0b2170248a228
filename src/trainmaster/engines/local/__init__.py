"""This machine: node agents as processes beside the dispatcher.

agent_pool.py  agents that are forked from one process, which is faster than a new Python for each
engine.py      the engine
"""
