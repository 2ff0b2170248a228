"""The supervisor: one small process per service. It owns the address, restarts replicas and replaces generations.

It is detached like the agent of a run: it needs no dispatcher, and a later dispatcher finds it by its claim. Run it
with `python -m trainmaster.scoring.supervisor FOLDER`. Its plan and its state are defined in `shared/service_plan.py`.
"""
