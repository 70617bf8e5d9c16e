"""What people type, before it is stored: its length, and that a database can hold it."""

from curation.web.problems import FieldError


def wrong_text(name: str, text: str, *, most: int) -> list[FieldError]:
    """What is wrong with a text, if anything. PostgreSQL has no NUL in its texts."""
    if len(text) > most:
        return [FieldError(name, f"has more than {most:,} characters")]
    if "\x00" in text:
        return [FieldError(name, "holds a NUL character")]
    return []
