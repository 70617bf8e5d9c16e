#!/usr/bin/env python
"""Winnow's command line: `manage.py demo`, `manage.py run`, `manage.py token`, and Django's own commands."""

import gc
import os
import sys


def main() -> None:
    """Run the command that the arguments name. A user's error is printed as one line; `--traceback` shows all."""
    # What is imported stays: looking for garbage among it takes a sixth of the start.
    gc.set_threshold(50_000)
    if sys.argv[1:3] == ["demo", "--supervise"]:
        # What `manage.py demo` becomes once the project is made: Django would only stay in memory.
        from curation.dashboard.demo.supervisor import supervise

        sys.exit(supervise(*sys.argv[3:]))
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import Error

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"Error: {error}")
    except (OSError, Error) as error:
        from curation.web.failures import explain

        explained = explain(error)
        if explained is None or "--traceback" in sys.argv:
            raise
        sys.exit(f"Error: {explained}")


if __name__ == "__main__":
    main()
