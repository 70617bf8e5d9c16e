"""Images in a column of their own, which messages only name: by parts without data, or by a word in the text."""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from curation.imports.layouts.images import image_type
from curation.imports.layouts.session import Json
from curation.imports.sources.rows import RowRefused

COLUMN = "images"
# The word of LLaMA-Factory's rows.
_WORD = "<image>"
_ADDRESSES = ("image", "image_url", "source")


def with_images(row: Json) -> Json:
    """Return the row with the images of its column in the messages that name them, or the row itself if none does.
    Raises `RowRefused` if they name more images or fewer."""
    if not isinstance(row.get(COLUMN), list) or not row[COLUMN]:
        return row
    addresses = [_address(image) for image in row[COLUMN]]
    left = iter(addresses)
    filled = {name: _filled(value, left) if name != COLUMN else value for name, value in row.items()}
    named = len(addresses) - len([*left])
    if 0 < named < len(addresses):
        raise RowRefused(f"images has {len(addresses)} images, of which the messages name {named}")
    return filled if named else row


def _filled(value: Any, left: Iterator[str]) -> Any:
    if isinstance(value, list):
        return [part for inner in value for part in _parts(inner, left)]
    if not isinstance(value, dict):
        return value
    said = {name: value[name] for name in ("content", "value") if isinstance(value.get(name), str)}
    filled = {name: value[name] if name in said else _filled(inner, left) for name, inner in value.items()}
    return filled | {name: _split(text, left) for name, text in said.items() if _WORD in text}


def _parts(value: Any, left: Iterator[str]) -> list[Any]:
    is_empty = isinstance(value, dict) and value.get("type") == "image" and not any(map(value.get, _ADDRESSES))
    return [_image(left)] if is_empty else [_filled(value, left)]


def _split(text: str, left: Iterator[str]) -> list[Json]:
    first, *rest = text.split(_WORD)
    parts: list[Json] = [{"type": "text", "text": first}] if first else []
    for after in rest:
        parts.append(_image(left))
        if after:
            parts.append({"type": "text", "text": after})
    return parts


def _image(left: Iterator[str]) -> Json:
    address = next(left, None)
    if address is None:
        raise RowRefused("the messages name more images than the column images has")
    return {"type": "image", "image": address}


def _address(image: Any) -> str:
    """Return the address of an image: its path, or the data that `datasets` stores."""
    if isinstance(image, str):
        return image
    content, path = (image.get("bytes"), image.get("path")) if isinstance(image, Mapping) else (None, None)
    if isinstance(content, bytes):
        return f"data:{image_type(content)};base64,{base64.b64encode(content).decode()}"
    if isinstance(path, str):
        return path
    raise RowRefused("images has an image without a path or data")
