"""Sweeps: spaces, sampling, policies, and what to do next. Each name is loaded when it is first used."""
