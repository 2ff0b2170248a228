"""Horovod, compiled against the framework and the Open MPI of an environment, once per machine."""
