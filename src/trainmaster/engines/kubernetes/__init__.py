"""Runs on a Kubernetes cluster.

The client of the API server (nothing else here opens connections):

entries.py       parts of YAML files whose errors name the file and the key
kubeconfig.py    kubeconfig files: merged as kubectl does, and a context of them
plugin.py        programs that print credentials
tls.py           TLS contexts
access.py        where the server is, and the credentials for it: kubeconfig, or the service account of a pod
proxies.py       proxies on the way
connection.py    one connection, and the pool of them
api_errors.py    refusals in words
rights.py        which refusals pass; pure
api.py           requests
watch.py         one watch that never ends
exec_channel.py  a program in a container: input, output and exit status over a WebSocket

What a run has in the cluster, and what that says. All of it is pure:

options.py           what the pods of a run request and have: from the target and the run
docker_arguments.py  what options for docker mean for a pod
pods.py              the names and manifests of a run's objects
pod_patch.py         the patch of a target
reasons.py           why pods wait, in words
unschedulable.py     what the scheduler says, in words
endings.py           how pods end

The engine:

gang.py              what to do next for the pods of a run; pure
gang_control.py      creates pods, waits for them, gives them back
pod_watch.py         all pods of a workspace, by one watch
cluster.py           one namespace: its API server and its pods
pod_host.py          a pod as a host that our helper is started on
stream.py            an attempt whose files go over the API server
storage.py           an attempt in pods that see the workspace's folder
local_host.py        this machine as a host: puts environments into that folder
notes.py             which pods an attempt has, on disk
losses.py            why nodes were lost
cleaning.py          removes what no run needs
engine.py            the engine
"""
