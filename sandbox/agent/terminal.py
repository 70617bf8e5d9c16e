"""A terminal's text: the orientation at login, then each command's output and the next prompt."""

from sandbox.protocol import HOME, USER, ExecResult

HOST = "host"
# What a shell prints for a killed job; SIGKILL is exit code 128 + 9.
KILLED, KILLED_CODE = "Killed\n", 137


def prompt_of(cwd: str) -> str:
    """The prompt in this directory, with `~` for the home."""
    shown = f"~{cwd.removeprefix(HOME)}" if cwd == HOME or cwd.startswith(f"{HOME}/") else cwd
    return f"{USER}@{HOST}:{shown}$ "


def orientation(*, banner: str, motd: str, prompt: str) -> str:
    """The text at login: the banner, the message of the day, the first prompt."""
    lines = [text if text.endswith("\n") else f"{text}\n" for text in (banner, motd) if text]
    return "".join(lines) + prompt


def exit_code_of(result: ExecResult) -> int:
    return KILLED_CODE if result.timed_out else result.exit_code


def screen_text(result: ExecResult, prompt: str) -> str:
    """The output and the next prompt; after a timeout also the shell's message that the command was killed."""
    output = result.output
    if result.timed_out:
        output += ("" if not output or output.endswith("\n") else "\n") + KILLED
    return output + prompt
