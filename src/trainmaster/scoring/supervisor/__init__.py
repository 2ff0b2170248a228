"""The supervisor: one small process per service. It owns the address, keeps the replicas, swaps generations.

Detached, as the agent of a run is: it needs no dispatcher, and a dispatcher that comes later finds it by its claim.
`python -m trainmaster.scoring.supervisor FOLDER`; what it is told and what it tells is in `shared/service_plan.py`.
"""
