"""Images in the messages of a row: a text has `IMAGE` where one is shown, and `images` has their addresses in order.

An address is `sha256:` and a digest of a file that the project keeps, a `data:` address, or one elsewhere.
"""

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.core.files.storage import default_storage

from curation.imports.layouts.images import image_data, image_type
from curation.trajectories.imported.images import key_of
from curation.trajectories.models import STORED

# The character that Unicode has for an object in a text.
IMAGE = "\ufffc"
# The folder of an export with its images, each content once.
FOLDER = "images"
_ENDINGS = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}


def is_image(name: str) -> bool:
    return name.startswith(f"{FOLDER}/")


def images_of(messages: Iterable[Mapping[str, Any]]) -> list[str]:
    return [address for message in messages if "images" in message for address in message["images"]]


def are_asked(messages: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether only users show images, the only ones that some readers take them from."""
    return all(message["role"] == "user" for message in messages if "images" in message)


def with_parts(message: Mapping[str, Any], image: Callable[[str], Mapping[str, Any]]) -> dict[str, Any]:
    """Return a message whose content is a list of parts if it has images; `image` returns the part of an address."""
    kept = {name: value for name, value in message.items() if name != "images"}
    if "images" not in message:
        return kept
    first, *texts = message["content"].split(IMAGE)
    parts: list[Mapping[str, Any]] = [_text(first)] if first.strip() else []
    for address, text in zip(message["images"], texts, strict=True):
        parts.append(image(address))
        if text.strip():
            parts.append(_text(text))
    return {**kept, "content": parts}


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text.strip("\n")}


class Images:
    """The images of a project by their addresses. One that is elsewhere, or whose file is lost, has no content."""

    def __init__(self, project_id: int) -> None:
        self._project_id = project_id
        self._names: dict[str, str] = {}

    def content(self, address: str) -> bytes | None:
        if not address.startswith(STORED):
            return image_data(address) if address.startswith("data:") else None
        try:
            with default_storage.open(key_of(self._project_id, address.removeprefix(STORED)), "rb") as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def file(self, address: str) -> tuple[str, bytes]:
        """Return the name and the content of an image that has been named. Raises `FileNotFoundError` if it is lost."""
        content = self.content(address)
        if content is None:
            raise FileNotFoundError(address[:100])
        return self._name(address), content

    def names(self, addresses: Sequence[str]) -> list[str] | None:
        """Return the names of the files beside the rows, or None if one image has no content."""
        names = [self._name(address) for address in addresses]
        return names if all(names) else None

    def inlined(self, addresses: Sequence[str], content: Mapping[str, object]) -> Mapping[str, object] | None:
        """Return the content of a row with the data of its images, or None if a stored one has no content."""
        urls = {address: self._url(address) for address in addresses}
        return {name: _replaced(inner, urls) for name, inner in content.items()} if all(urls.values()) else None

    def _name(self, address: str) -> str:
        if address not in self._names:
            content = self.content(address)
            if content is None:
                return ""
            ending = _ENDINGS.get(image_type(content), "")
            self._names[address] = f"{FOLDER}/{hashlib.sha256(content).hexdigest()}{ending}"
        return self._names[address]

    def _url(self, address: str) -> str:
        if not address.startswith(STORED):
            return address
        content = self.content(address)
        return "" if content is None else f"data:{image_type(content)};base64,{base64.b64encode(content).decode()}"


def _replaced(value: Any, texts: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return texts.get(value, value)
    if isinstance(value, Mapping):
        return {name: _replaced(inner, texts) for name, inner in value.items()}
    return [_replaced(inner, texts) for inner in value] if isinstance(value, list | tuple) else value
