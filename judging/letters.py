"""Letters that look like Latin ones, and characters that nobody sees."""

import re
import unicodedata

# Cyrillic and Greek letters that look like Latin ones; NFKC keeps them.
_LOOKS = str.maketrans(
    "аеорсухіјѕһԁԛԝкмтвнοανρτυκАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aeopcyxijshdqwkmtbhoavptukABEKMHOPCTYXIJSABEZHIKMNOPTYX"
)
_HIDDEN = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")


def plain_letters(text: str) -> str:
    """Return the text in NFKC, with Latin letters for those that look like them and without invisible characters."""
    return _HIDDEN.sub("", unicodedata.normalize("NFKC", text)).translate(_LOOKS)
