"""`trainmaster compute create kubernetes [NAME]`: a target in a namespace of a Kubernetes cluster."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainmaster.cli.compute_target import describe_nodes, target_as_json
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.output import show_result
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.compute.kubernetes import DEFAULT_IMAGE, KubernetesCompute
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.sdk.display.screen import note, note_warnings

# Options with one value, and the parameter of KubernetesCompute.configuration that each of them sets.
_TEXTS = {
    "context": ("NAME", "the context of the kubeconfig file; default: the current one"),
    "namespace": ("NAME", "the namespace of the pods; default: that of the context"),
    "kubeconfig": ("FILE", "the kubeconfig file; default: $KUBECONFIG, or ~/.kube/config"),
    "image": ("IMAGE", f"the image of runs that name none: any with Python 3.6 or newer; default: {DEFAULT_IMAGE}"),
    "image_pull_policy": ("WHEN", "Always, IfNotPresent or Never; default: the cluster's rule"),
    "storage": ("claim=NAME[,path=DIR]", "a volume that pods and this machine share; default: files are sent to pods"),
    "cache": ("PLACE", "where pods keep what was sent to them: claim=NAME or node=/FOLDER; default: none"),
    "gpu_resource": ("NAME", "what the cluster calls GPUs, such as amd.com/gpu; default: nvidia.com/gpu"),
    "shm_size": ("SIZE", "the size of /dev/shm; default: 2Gi"),
    "priority_class": ("NAME", "the priority class of the pods"),
    "service_account": ("NAME", "the service account of the pods; default: none, so that runs cannot use the cluster"),
    "queue": ("NAME", "the local queue of Kueue"),
    "scheduler": ("NAME", "the scheduler of the pods"),
    "service_type": ("TYPE", "how services of models are reached: ClusterIP, NodePort or LoadBalancer"),
    "service_address": ("HOST", "the host by which users reach ports of nodes, or the load balancer"),
    "ingress_host": ("*.DOMAIN", "put services of models behind an Ingress, each under its own name"),
    "ingress_class": ("NAME", "the class of the Ingress"),
    "ingress_secret": ("NAME", "the secret with the certificate of the Ingress; default: no TLS"),
}
_LISTS = {
    "resource": ("NAME=N", "another device that each pod requests, such as rdma/hca=1", "resources"),
    "node_selector": ("KEY=VALUE", "a label that machines must have", "node_selector"),
    "toleration": ("KEY[=VALUE][:EFFECT]", "a taint that the pods tolerate", "tolerations"),
    "volume": (
        "KIND=NAME,path=DIR",
        "another volume: claim=, node=/FOLDER, config= or secret=; ',read-only'",
        "volumes",
    ),
    "image_pull_secret": ("NAME", "a secret for the registry of the image", "image_pull_secrets"),
    "label": ("KEY=VALUE", "a label of the pods", "labels"),
    "annotation": ("KEY=VALUE", "an annotation of the pods", "annotations"),
}
_NUMBERS = {
    "run_as_user": ("ID", "the user of the pods' processes; default: that of the image"),
    "run_as_group": ("ID", "their group"),
    "fs_group": ("ID", "the group of mounted volumes"),
    "grace_seconds": ("N", "how long a stopped pod may take to end; default: 30"),
    "gang_seconds": ("N", "give pods back if not all of a run got a machine in this time; default: 300"),
}


def create_arguments(parser: Parser) -> None:
    """Adds the options for a Kubernetes cluster."""
    group = parser.add_argument_group("a Kubernetes cluster (compute create kubernetes [NAME])")
    for name, (metavar, text) in _TEXTS.items():
        group.add_argument(_option(name), metavar=metavar, default="", help=text)
    group.add_argument("--in-cluster", action="store_true", help="use the service account of the dispatcher's own pod")
    group.add_argument(
        "--spread",
        nargs="?",
        const="require",
        default="",
        metavar="prefer|require",
        help="put the pods of a run on different machines",
    )
    for name, (metavar, text, _) in _LISTS.items():
        group.add_argument(
            _option(name), metavar=metavar, action="append", default=[], help=f"{text} (may be repeated)"
        )
    for name, (metavar, text) in _NUMBERS.items():
        group.add_argument(_option(name), metavar=metavar, type=int, help=text)
    group.add_argument(
        "--pod-patch", metavar="FILE", default="", help="a JSON or YAML file that is merged into each pod"
    )


def refuse(options: Options) -> None:
    """Refuses these options for another engine."""
    for name in (*_TEXTS, *_LISTS, *_NUMBERS, "in_cluster", "spread", "pod_patch"):
        if getattr(options, name) not in ("", None, [], False):
            raise UserErrorException(
                f"{_option(name)} applies only to Kubernetes",
                hint="Use 'trainmaster compute create kubernetes NAME'.",
            )


def create(words: Sequence[str], options: Options) -> int:
    """Creates a target in a namespace of a cluster, once the cluster has answered."""
    if len(words) > 1:
        raise UserErrorException(
            f"unexpected argument '{words[1]}'", hint="Write trainmaster compute create kubernetes [NAME]."
        )
    configuration = KubernetesCompute.configuration(**_parameters(options))
    workspace = open_workspace(options.workspace)
    with note_warnings():
        target = ComputeTarget.create(workspace, words[0] if words else "kubernetes", configuration)
    facts = target_as_json(target)
    code = show_result(options, facts, f"Target '{target.name}' has {describe_nodes(facts)}.")
    if not options.json:
        note(f"Try it: trainmaster compute test {target.name}")
    return code


def _parameters(options: Options) -> dict[str, Any]:
    """The parameters of KubernetesCompute.configuration that were given."""
    given = {name: getattr(options, name) for name in (*_TEXTS, *_NUMBERS, "nodes", "vm_size", "spread", "python")}
    given |= {parameter: getattr(options, name) for name, (_, _, parameter) in _LISTS.items()}
    given |= {
        "cpus_per_node": options.cpus,
        "gpus_per_node": options.gpus,
        "memory_per_node": options.memory_per_node,
        "limit_cpus": options.limit_cpus,
        "in_cluster": options.in_cluster,
        "pod_patch": _read_patch(options.pod_patch) if options.pod_patch else None,
    }
    return {name: value for name, value in given.items() if value not in ("", None, [], False)}


def _read_patch(path: str) -> dict[str, Any]:
    import yaml

    try:
        text = Path(path).read_text(encoding="utf-8")
        found = json.loads(text) if path.endswith(".json") else yaml.safe_load(text)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise UserErrorException(f"the pod patch {path} cannot be read", cause=str(error)) from None
    if not isinstance(found, dict):
        raise UserErrorException(f"the pod patch {path} is not an object", hint='It has "metadata", "spec" or both.')
    return found


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
