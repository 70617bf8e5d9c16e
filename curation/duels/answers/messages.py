"""What king and challenger are sent: the history as it was, the stage's instructions in its system message."""

from collections.abc import Mapping, Sequence

from curation.duels.models import PullRequest

Message = Mapping[str, object]


def king_messages(instructions: str, history: Sequence[Message]) -> list[Message]:
    """The history alone: the king answers blind."""
    return _with_system(instructions, history)


def challenger_messages(instructions: str, history: Sequence[Message], record: PullRequest) -> list[Message]:
    """The history, and the hidden record in the system message."""
    text = record.text
    parts = [
        f"Title: {record.title}",
        f"Files: {', '.join(map(str, record.files))}",
        f"Issue:\n{text.issue}",
        f"Description:\n{text.description}",
        f"Patch:\n{text.patch}",
    ]
    return _with_system(f"{instructions}\n<record>\n" + "\n\n".join(parts) + "\n</record>", history)


def _with_system(instructions: str, history: Sequence[Message]) -> list[Message]:
    """One system message in front: the source's own, then the stage's. Many servers refuse a second one."""
    own = [str(m.get("content") or "") for m in history if m.get("role") == "system"]
    rest = [m for m in history if m.get("role") != "system"]
    return [{"role": "system", "content": "\n\n".join([*filter(None, own), instructions])}, *rest]
