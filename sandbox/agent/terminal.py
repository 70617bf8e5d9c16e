"""What a terminal shows: the orientation at login, then each command's output and the next prompt."""

from sandbox.protocol import HOME, USER, ExecResult

HOST = "host"
# A shell says this of a job that was killed; what is killed by SIGKILL ends with 128 + 9.
KILLED, KILLED_CODE = "Killed\n", 137


def prompt_of(cwd: str) -> str:
    """The prompt in this directory, with `~` for the home."""
    shown = f"~{cwd.removeprefix(HOME)}" if cwd == HOME or cwd.startswith(f"{HOME}/") else cwd
    return f"{USER}@{HOST}:{shown}$ "


def orientation(*, banner: str, motd: str, prompt: str) -> str:
    """What is seen on entering: the login banner, the message of the day, the first prompt."""
    lines = [text if text.endswith("\n") else f"{text}\n" for text in (banner, motd) if text]
    return "".join(lines) + prompt


def exit_code_of(result: ExecResult) -> int:
    return KILLED_CODE if result.timed_out else result.exit_code


def shown(result: ExecResult, prompt: str) -> str:
    """The output as it came and the next prompt; a command that ran out of time was killed, and the shell says so."""
    output = result.output
    if result.timed_out:
        output += ("" if not output or output.endswith("\n") else "\n") + KILLED
    return output + prompt
