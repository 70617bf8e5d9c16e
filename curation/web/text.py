"""Text from outside that no database would take as it is."""


def storable(text: str) -> str:
    """The text with NUL and lone surrogates, which no database stores, as replacement characters."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def storable_json(value: object) -> object:
    """The same document with every text in it storable, keys too."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(str(name)): storable_json(inner) for name, inner in value.items()}
    return [storable_json(inner) for inner in value] if isinstance(value, list | tuple) else value
