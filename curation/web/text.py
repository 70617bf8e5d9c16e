"""Text from outside that no database would take as it is."""


def storable(text: str) -> str:
    """The text with NUL and lone surrogates, which no database stores, as replacement characters."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
