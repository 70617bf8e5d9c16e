"""The command line: `winnow demo`, `winnow serve`, `winnow token create …`. It needs nothing but a folder to work in.

The site is Django's usual tree beside this package, or in its folder `server` when it is installed. Its top folders
have names such as `config`, so only this command puts them on the path.
"""

import argparse
import os
import runpy
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).resolve().parent
SITE = HERE / "server" if (HERE / "server").is_dir() else HERE.parent
DATABASE = "winnow.sqlite3"
COMMANDS = {
    "demo": "start with a sample project and scripted models",
    "serve": "start web and worker, with an empty site at first",
    "worker": "start one worker more, on this or another machine",
    "account": "make an account for a person, with a first password",
    "token": "create, list and revoke API tokens",
    "import": "import a file or an address, and wait for the end",
    "run": "launch a run and follow it",
    "export": "write the files of an export to a folder",
    "serve-env": "serve a project's scenarios to trainers, as an OpenEnv environment",
    "remote": "run, import, push or export on a site elsewhere, with an API token",
    "backup": "write database, files and key to one archive, while Winnow runs",
    "docs": "write the documentation to a folder, as a static site",
    "mcp": "serve a running Winnow to agents, by the Model Context Protocol",
    "manage": "Django's own commands, such as createsuperuser",
}
USAGE = """usage: winnow [--version] [COMMAND] [OPTIONS]

{commands}

`winnow COMMAND --help` explains a command. Without one, Winnow starts on the data that is there, or makes the demo.
Data is in ./data; WINNOW_DATA names another folder, PORT another port than 8000."""


def main() -> None:
    """Run the command that the arguments name; the exit status is its own."""
    arguments = sys.argv[1:]
    # In a clone the client is beside this package.
    if HERE.parent == SITE and str(SITE) not in sys.path:
        sys.path.insert(0, str(SITE))
    # Beside the user's files, not in the folder of an installed package.
    os.environ["WINNOW_DATA"] = str(Path(os.environ.get("WINNOW_DATA") or "data").expanduser().resolve())
    if not arguments:
        arguments = ["serve" if _has_data() else "demo"]
    command, *options = arguments
    if command in {"-h", "--help", "help"}:
        print(_usage())
    elif command == "--version":
        print(f"winnow {_version()}")
    elif command == "remote":
        from winnow_client.command import main as work_remotely

        work_remotely(options)
    elif command == "mcp":
        given = mcp_parser().parse_args(options)
        from winnow.mcp import serve

        serve(given.url, given.http, given.host, write=given.write)
    elif command not in COMMANDS:
        sys.exit(f"There is no command {command!r}.\n\n{_usage()}")
    else:
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        sys.path.insert(0, str(SITE))
        # The first word is what help and errors call the command.
        sys.argv = (
            ["winnow manage", *options] if command == "manage" else ["winnow", command.replace("-", "_"), *options]
        )
        runpy.run_path(str(SITE / "manage.py"))["main"]()


def mcp_parser() -> argparse.ArgumentParser:
    """The options of `winnow mcp`, which explains itself without the packages that it needs."""
    parser = argparse.ArgumentParser(
        prog="winnow mcp",
        description="An MCP server for agents. Over stdin and stdout, WINNOW_TOKEN has the API token.",
    )
    parser.add_argument("--url", default="", help="the site (default: that of WINNOW_URL)")
    parser.add_argument("--http", type=int, metavar="PORT", help="serve streamable HTTP at /mcp instead of stdio")
    parser.add_argument("--host", default="127.0.0.1", help="the address of --http (default %(default)s)")
    parser.add_argument("--write", action="store_true", help="offer the tools that change something, too")
    return parser


def _has_data() -> bool:
    """The demo has a public password: a site that exists, here or on another database, never gets it unasked."""
    return bool(os.environ.get("DATABASE_URL")) or Path(os.environ["WINNOW_DATA"], DATABASE).exists()


def _usage() -> str:
    return USAGE.format(commands="\n".join(f"  {name:<9} {what}" for name, what in COMMANDS.items()))


def _version() -> str:
    try:
        return version("winnow-curation")
    except PackageNotFoundError:
        return "(not installed)"
