"""`python <this folder> serve|check|alone server.json ...`, in the model's environment, under any folder name."""

import importlib.util
import os
import sys

_NAME = "scoring_server"


def main(arguments: "list[str]") -> int:
    """`check FILE` prints the errors of the script as JSON; `serve FILE LISTENING CHANNEL NUMBERS SLOT SECONDS`.

    `alone FILE` serves without a supervisor.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    # Python puts the folder of a program first on its path, but the script must not import these modules.
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != here]
    spec = importlib.util.spec_from_file_location(
        _NAME, os.path.join(here, "__init__.py"), submodule_search_locations=[here]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = package
    spec.loader.exec_module(package)
    replica = importlib.import_module(_NAME + ".replica")
    if arguments[0] == "check":
        import json

        answer = replica.check(arguments[1])
        print(json.dumps(answer))
        return 0 if "ready" in answer else int(replica.BROKEN)
    if arguments[0] == "alone":
        return int(importlib.import_module(_NAME + ".alone").serve(arguments[1]))
    path, listening, channel, numbers, slot, seconds = arguments[1:]
    return int(replica.serve(path, int(listening), int(channel), numbers, int(slot), float(seconds)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
