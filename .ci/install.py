"""Installs what is named into the Python that runs this, as `pip install` would, with uv: seconds instead of minutes.

.venv/bin/python .ci/install.py --editable '.[dev]'
"""

import os
import sys

from trainmaster.environments.tools import Tools

tools = Tools(os.environ)
# Compiled as pip does it: otherwise every program of the tests would do so anew.
options = ["--quiet", "--python", sys.executable, "--compile-bytecode", *tools.source_options]
command = tools.uv_command(["pip", "install", *options, *sys.argv[1:]])
os.execve(command[0], command, tools.uv_environ)
