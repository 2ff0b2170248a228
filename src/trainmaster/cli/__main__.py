"""`python -m trainmaster.cli` does the same as the console script."""

import sys

from trainmaster.cli import main

if __name__ == "__main__":
    sys.exit(main())
