"""Names that anyone may use without having seen a repository: tools, languages, libraries, ordinary words."""


def word_set(text: str) -> frozenset[str]:
    """Return the blank-separated words of `text`."""
    return frozenset(text.split())
