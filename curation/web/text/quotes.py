"""Code words of a sentence. In code and REST they are in backticks, which no page renders."""

import re

from django import template

register = template.Library()
_CODE = re.compile(r"`([^`\n]+)`")


@register.filter(is_safe=True)
def quoted(text: str) -> str:
    """Return a sentence for a page: "Give a “split” or a “file”."."""
    return _CODE.sub(r"“\1”", str(text))
