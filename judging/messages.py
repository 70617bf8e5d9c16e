"""Chat messages as the OpenAI interface has them."""

from collections.abc import Mapping, Sequence


def content_of(message: object) -> str:
    """The text of a message, whose content is a text, a list of parts or missing; a plain text is its own content.

    What is no text among the parts is left out.
    """
    content = message.get("content") if isinstance(message, Mapping) else message
    if isinstance(content, str):
        return content
    parts: Sequence[object] = content if isinstance(content, Sequence) and not isinstance(content, bytes) else ()
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))
