"""`python -I -S -E <kit>/trainmaster/job/agent/__main__.py <plan.json>`, or `--nursery [modules]` instead of the plan.

Kept tiny: unlike a module, a script is compiled anew at every start.
"""

import os
import sys

if __name__ == "__main__":
    # -I keeps the user's packages and variables out; it also keeps out the kit this file lies in.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))
    if sys.argv[1:2] == ["--nursery"]:
        from trainmaster.job.agent.pool import main as serve

        sys.exit(serve(sys.argv[2:]))
    from trainmaster.job.agent.agent import main

    sys.exit(main(sys.argv[1:]))
