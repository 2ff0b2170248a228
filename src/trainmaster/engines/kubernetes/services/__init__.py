"""Scoring services on Kubernetes: a Deployment with a Service, which need no dispatcher once they run.

`shape.py`, `manifests.py` and `rollout.py` are pure: from settings to objects, and from objects to a state in words.
`loading.py` puts code, models and packages on the claim of the target, `pod_logs.py` reads logs, and `service.py`
does the rest.
"""
