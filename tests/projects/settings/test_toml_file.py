"""A file of settings is read whole, or refused with the place that is wrong."""

import pytest

from curation.projects.settings.toml_file import settings_from_toml
from curation.web.problems import Invalid

WHOLE = """
[judge]
models = ["judge-a", "judge-b"]
max_tokens = 800
temperature = 0
swap = true

[duel]
final = 80
refined = 66.5
mode = 2
cluster = true

[train]
lr = 1.0
"""


def test_a_whole_file() -> None:
    panel = {"judges": ["judge-a", "judge-b"], "max_tokens": 800, "temperature": 0.0, "swap": True, "mode": 2}
    patch = {"panel": panel, "thresholds": {"final": 80.0, "refined": 66.5}, "gate": {"cluster": True}}
    assert settings_from_toml(WHOLE) == (patch, ["train"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[judge]\nmodel = 'x'", r"\[judge\] 'model' is not a setting"),
        ("final = 80", "unknown key outside of a table 'final'"),
        ("judge = 3", r"\[judge\] must be a table"),
        ("[judge]\nmodels = 'x'", r"\[judge\] models is 'x'"),
        ("[judge]\nmodels = ['x', 3]", r"\[judge\] models.1 is 3"),
        ("[judge]\nmax_tokens = 0", r"\[judge\] max_tokens is 0: .* greater than or equal to 16"),
        ("[judge]\nmax_tokens = 20.5", r"\[judge\] max_tokens is 20.5"),
        ("[judge]\nattempts = true", r"\[judge\] attempts is True"),
        ("[judge]\ntemperature = nan", r"\[judge\] temperature is nan"),
        ("[judge]\nswap = 1", r"\[judge\] swap is 1"),
        ("[duel]\nfinal = '80'", r"\[duel\] final is '80'"),
        ("[duel]\nmin_parsed = 50", r"\[duel\] min_parsed is 50: .* less than or equal to 1"),
        ("[duel]\nmode = 3", r"\[duel\] mode is 3"),
        ("[duel\n", "not a TOML file"),
        ("[duel]\nfinal = " + "[" * 2000, "not a TOML file"),
        ("[duel]\nfinal" + " . a" * 15_000 + " = 1", "a key has more than 64 parts"),
        ("[train]\nlr = 1.0", "The file sets nothing"),
    ],
)
def test_a_bad_file_is_refused_with_table_and_key(text: str, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        settings_from_toml(text)
