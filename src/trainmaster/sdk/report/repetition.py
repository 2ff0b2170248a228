"""How a run can be repeated, as a program that a person can copy. Pure."""

from __future__ import annotations

from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.records import RunRecord


def write_repetition(record: RunRecord, spec: JobSpec) -> str:
    """A program that submits the run again: the same code, arguments and packages."""
    kind = "module" if spec.entry == "module" else "script"
    what = f"{kind}={spec.script!r}, " if spec.script else f"command={list(spec.command)!r}, "
    notes = []
    if spec.node_count > 1 or spec.communicator != "None":
        notes.append(f"# It ran on {spec.node_count} nodes ({spec.framework}, {spec.communicator}): give")
        notes.append("# distributed_job_config too.")
    if spec.environment_variables:
        notes.append(f"# It had the variables {', '.join(spec.environment_variables)}.")
    lines = [
        "import shutil",
        "from trainmaster import Experiment, ScriptRunConfig, Workspace",
        "",
        "workspace = Workspace.from_config()",
        f"run = workspace.get_run({record.id!r})",
        'shutil.unpack_archive(run.restore_snapshot(path="."), "code")  # the code as it was submitted',
        "environment = run.get_environment()  # environment.lock has the exact packages",
        *notes,
        f'config = ScriptRunConfig("code", {what}arguments={list(spec.arguments)!r},',
        f"    compute_target={spec.target!r}, environment=environment)",
        f"Experiment(workspace, {record.experiment!r}).submit(config)",
    ]
    return "\n".join(lines)
