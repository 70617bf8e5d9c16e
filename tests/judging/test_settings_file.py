"""A settings file is read whole or refused with the place that is wrong."""

import pytest

from judging.settings_file import DuelTable, JudgeTable, SettingsError, read_duel_toml

WHOLE = """
[judge]
models = ["judge-a", "judge-b"]
max_tokens = 800
temperature = 0
attempts = 3
swap = true
min_judges = 2
show_reference = false

[duel]
final = 80
refined = 66.5
win_margin = 2.0
min_parsed = 0.5
max_leak = 0.1
mode = 2
resamples = 10000
seed = 7
cluster = true
"""


def test_a_whole_file() -> None:
    file = read_duel_toml(WHOLE)
    assert file.judge == JudgeTable(("judge-a", "judge-b"), 800, 0.0, 3, True, 2, False)
    assert file.duel == DuelTable(80.0, 66.5, 2.0, 0.5, 0.1, 2, 10_000, 7, True)


def test_missing_settings_are_none() -> None:
    file = read_duel_toml("[duel]\nfinal = 75")
    assert file.judge == JudgeTable()
    assert file.duel == DuelTable(final=75.0)
    assert read_duel_toml("") == read_duel_toml("# nothing")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[judge]\nmodel = 'x'", r"\[judge\] 'model' is not a setting"),
        ("[jury]\nmodels = ['x']", "unknown table 'jury'"),
        ("final = 80", "unknown key outside of a table 'final'"),
        ("judge = 3", r"\[judge\] must be a table"),
        ("[judge]\nmodels = 'x'", r"\[judge\] models is 'x'"),
        ("[judge]\nmodels = []", r"\[judge\] models"),
        ("[judge]\nmodels = ['x', 'x']", "different model names"),
        ("[judge]\nmodels = ['x', 3]", r"\[judge\] models"),
        ("[judge]\nmax_tokens = 0", r"\[judge\] max_tokens is 0: it must be a whole number from 1"),
        ("[judge]\nmax_tokens = 1.5", r"\[judge\] max_tokens"),
        ("[judge]\nattempts = true", r"\[judge\] attempts is True"),
        ("[judge]\ntemperature = nan", r"\[judge\] temperature"),
        ("[judge]\nswap = 1", r"\[judge\] swap is 1: it must be true or false"),
        ("[judge]\nmodels = ['x']\nmin_judges = 2", r"\[judge\] min_judges is 2: models names only 1"),
        ("[duel]\nfinal = '80'", r"\[duel\] final is '80'"),
        ("[duel]\nmin_parsed = 50", r"\[duel\] min_parsed is 50: it must be a number from 0 to 1"),
        ("[duel]\nmode = 3", r"\[duel\] mode is 3"),
        ("[duel]\nfinal = 60\nrefined = 70", r"\[duel\] refined is 70: it must not be above final"),
        ("[duel\n", "not a TOML file"),
    ],
)
def test_a_bad_file_is_refused_with_table_and_key(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_duel_toml(text)
