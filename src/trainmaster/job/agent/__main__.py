"""`python -I -S -E <kit>/trainmaster/job/agent/__main__.py <plan.json>`, or `--pool [modules]` instead of the plan.

Keep this file tiny: Python compiles a script at every start, while it caches modules.
"""

import os
import sys

if __name__ == "__main__":
    # -I keeps the user's packages and variables out, but also the kit that contains this file.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))
    if sys.argv[1:2] == ["--pool"]:
        from trainmaster.job.agent.pool import main as serve

        sys.exit(serve(sys.argv[2:]))
    from trainmaster.job.agent.agent import main

    sys.exit(main(sys.argv[1:]))
