"""MLflow's REST API over the store of a workspace: JSON in, JSON out.

The server answers MLflow's paths with it, and MLflow's clients on this machine reach it through the socket.
"""
