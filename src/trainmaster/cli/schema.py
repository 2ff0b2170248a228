"""`trainmaster schema`: JSON Schemas of the files that the command line reads."""

from __future__ import annotations

import json
from typing import Any

from trainmaster.cli import exits
from trainmaster.cli.parsing import Options
from trainmaster.sdk.display.screen import say


def job(options: Options) -> int:
    """Print the JSON Schema of job files. Editors use it to complete keys and to mark mistakes.

    A first line in the job file tells editors with the YAML language server where it is:
    # yaml-language-server: $schema=job.schema.json

    JSON: the schema, with or without --json.

      trainmaster schema job > job.schema.json
    """
    from trainmaster.sdk.job_files.schema import job_schema

    return _print(job_schema())


def sweep(options: Options) -> int:
    """Print the JSON Schema of sweep files. Editors use it to complete keys and to mark mistakes.

    JSON: the schema, with or without --json.

      trainmaster schema sweep > sweep.schema.json
    """
    from trainmaster.cli.sweep_schema import sweep_schema

    return _print(sweep_schema())


def _print(schema: dict[str, Any]) -> int:
    say(json.dumps(schema, indent=2))
    return exits.OK
