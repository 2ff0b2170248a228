"""Stands in for docker in tests: answers `info`, and runs what `run` is asked to without any container.

Only what would be seen inside is passed on: the variables named by --env, the folder named by --workdir.
"""

from __future__ import annotations

import os
import sys

SWITCHES = ("--rm", "--init")


def main(words: list[str]) -> None:
    if words[0] == "info":
        print("26.0")
        return
    assert words[0] == "run", words
    variables = {"PATH": os.path.dirname(sys.executable)}
    position = 1
    while words[position].startswith("-"):
        option, value = words[position], words[position + 1]
        if option == "--env":
            name, is_set, given = value.partition("=")
            variables[name] = given if is_set else os.environ[name]
        elif option == "--workdir":
            os.chdir(value)
        elif option == "--mount":
            source = dict(part.partition("=")[::2] for part in value.split(","))["source"]
            assert os.path.exists(source), source
        position += 1 if option in SWITCHES else 2
    image, *argv = words[position:]
    variables["IMAGE"] = image
    os.execvpe(argv[0], argv, variables)


if __name__ == "__main__":
    main(sys.argv[1:])
