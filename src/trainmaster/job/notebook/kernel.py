"""The process that runs the cells: an IPython kernel of the job's own Python, whose `sys.argv` is that of a script."""

import os
import sys

# Set for this process by the one that starts it.
ARGUMENTS = "TRAINMASTER_NOTEBOOK_ARGUMENTS"
CODE_FOLDER = "TRAINMASTER_NOTEBOOK_FOLDER"


def main() -> None:
    """Starts the kernel; `-f FILE` names its connection file."""
    import importlib
    import json

    app = importlib.import_module("ipykernel.kernelapp").IPKernelApp.instance()
    arguments, folder = json.loads(os.environ.pop(ARGUMENTS)), os.environ.pop(CODE_FOLDER)
    app.initialize(sys.argv[1:])
    sys.argv = arguments
    # As with a script, modules beside the notebook can be imported.
    sys.path.insert(0, folder)
    app.start()


if __name__ == "__main__":
    main()
