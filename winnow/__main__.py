"""The start of `winnow`.

`python -m winnow` and PYTHONPATH may name the user's folder, whose `json.py` or `config` is not ours: it is left before
anything else is imported, and no process that this one starts has it on the path.
"""

import os
import sys


def main() -> None:
    """Run the command that the arguments name; the exit status is its own."""
    sys.path[:] = filter(_is_elsewhere, sys.path)
    places = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(_is_elsewhere, places))
    from winnow.commands import main as run

    run()


def _is_elsewhere(place: str) -> bool:
    return os.path.realpath(place) != os.getcwd()  # noqa: PTH109 - pathlib may be a file of the user


if __name__ == "__main__":
    main()
