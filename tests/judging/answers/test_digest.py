"""The hash that an approval names, which exports compare with the text that they write."""

import hashlib
import json

from hypothesis import example, given
from hypothesis import strategies as st

from judging.answers.digest import answer_sha256


@given(st.text())
@example("half of a pair: \ud800")
@example('"quoted"\n\\ é \u2028')
def test_a_plain_answer_has_the_hash_of_the_canonical_form(text: str) -> None:
    canonical = json.dumps({"content": text}, sort_keys=True, separators=(",", ":"))
    assert answer_sha256(text) == hashlib.sha256(canonical.encode()).hexdigest()
    assert answer_sha256(text, reasoning="why") != answer_sha256(text)
