"""Numbers of things in sentences."""


def counted(number: int, noun: str) -> str:
    """Return "1 item", "2 items" or "12,000 items"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
