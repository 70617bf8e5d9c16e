"""A rubric is a text or rewardkit's TOML, and a reply to it a score; what cannot be read is none."""

import json

import pytest

from judging.criteria import Unscored, read_criteria
from judging.messages import content_of, split_calls

KIT = """
[judge]
judge = "anthropic/claude-sonnet-5"
files = ["/app/main.py"]

[[criterion]]
name = "correct"
description = "Is the code correct?"
type = "binary"

[[criterion]]
description = "How readable is the code?"
type = "likert"
points = 5
weight = 2.0

[[criterion]]
name = "Test-coverage"
description = "Rate the tests."
type = "numeric"
min = 0
max = 100
"""


def reply(**values: object) -> str:
    return f"<think>So.</think>```json\n{json.dumps({**values, 'reason': 'as seen'})}\n```"


def test_criteria_of_a_judge_that_asks_for_each_may_name_their_files() -> None:
    own = '[judge]\nmode = "individual"\n[[criterion]]\ndescription = "Is it?"\nfiles = ["/app/a"]\nweight = 0.5\n'
    assert read_criteria(own).score('{"criterion_1": false}') == (0.0, "")


def test_a_text_is_one_criterion() -> None:
    rubric = read_criteria("Is it brief?")
    assert rubric.text == "- score (0 to 10): Is it brief?"
    assert rubric.score(reply(score=7)) == (0.7, "as seen")


def test_the_criteria_of_rewardkit_are_weighted() -> None:
    rubric = read_criteria(KIT)
    assert [one.name for one in rubric.criteria] == ["correct", "criterion_2", "test_coverage"]
    score, _ = rubric.score(reply(correct=True, criterion_2=4, test_coverage=50))
    assert score == pytest.approx((1 + 2 * 0.75 + 0.5) / 4)


@pytest.mark.parametrize(
    ("aggregation", "score"), [("all_pass", 0.0), ("any-pass", 1.0), ("threshold", 0.0), ("weighted-mean", 0.375)]
)
def test_scores_are_aggregated_as_the_rubric_says(aggregation: str, score: float) -> None:
    rubric = read_criteria(f'{KIT}\n[scoring]\naggregation = "{aggregation}"\nthreshold = 0.7\n')
    assert rubric.score(reply(correct=True, criterion_2=2, test_coverage=0))[0] == score


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("good", "no JSON object"),
        ('{"score": 5', "no JSON object"),
        ('{"reason": "fine"}', "lacks score"),
        ('{"score": 11}', "11 is no value of score"),
        ('{"score": true}', "true is no value of score"),
        ('{"score": "9"}', '"9" is no value'),
        ('{"score": NaN}', "NaN is no value"),
        ('{"a":' * 200_000 + "1" + "}" * 200_000, "no JSON object"),
    ],
)
def test_a_reply_that_is_no_score_is_none(said: str, why: str) -> None:
    with pytest.raises(Unscored, match=why):
        read_criteria("Is it brief?").score(said)


@pytest.mark.parametrize("values", [{"correct": 0.5}, {"criterion_2": 3.5}])
def test_a_binary_criterion_and_a_likert_scale_have_whole_values(values: dict[str, float]) -> None:
    given = {"correct": 1, "criterion_2": 3, "test_coverage": 12.5}
    assert read_criteria(KIT).score(reply(**given))[0] == pytest.approx((1 + 2 * 0.5 + 0.125) / 4)
    with pytest.raises(Unscored, match="which has whole ones"):
        read_criteria(KIT).score(reply(**given | values))


@pytest.mark.parametrize(
    ("criterion", "why"),
    [
        ('type = "binary"', "needs a description"),
        ('description = "a"\ntype = "stars"', "a type of binary"),
        ('description = "a"\ntype = "likert"\npoints = 1', "range is empty"),
        ('description = "a"\nweight = 0', "weight is not above 0"),
        ('description = "a"\nname = "reason"', "has the name"),
        ('description = "a"\ntype = "numeric"\nmax = "x"', "max is a number"),
        ('description = "a"\n[[criterion]]\nname = "criterion_1"\ndescription = "b"', "the same name"),
        ('description = "a"\n[scoring]\naggregation = "best"', "aggregation is one of"),
        ("description = a", "not TOML"),
        ("description = " + "[" * 2000, "not TOML"),
        ('description = "a"\n[[criterion.criterion]]\ndescription = "b"', "criterion 1: criterion is not known"),
        ('description = "a"\nnegate = true', "criterion 1: negate is not known"),
        ('description = "a"\n[scoring]\nweights = {a = 1}', "scoring: weights is not known"),
        ('description = "a"\n[[reward]]\nname = "r"', "the file: reward is not known"),
        ('description = "a"\nweight = 1' + "0" * 400, "weight is a number"),
    ],
)
def test_a_rubric_that_cannot_be_read_says_why(criterion: str, why: str) -> None:
    with pytest.raises(Unscored, match=why):
        read_criteria(f"[[criterion]]\n{criterion}\n")


@pytest.mark.parametrize("rubric", ['text = """\n[[criterion]]\n"""', 'scoring = 3\n[[criterion]]\ndescription = "a"'])
def test_tables_of_another_form_are_no_criteria(rubric: str) -> None:
    with pytest.raises(Unscored, match="are tables"):
        read_criteria(rubric)


def test_content_of_a_message_in_parts() -> None:
    assert content_of({"content": [{"type": "text", "text": "a"}, {"type": "image_url"}, {"text": "b"}]}) == "a\nb"
    assert content_of({"content": None, "tool_calls": []}) == ""
    assert content_of("plain") == "plain"


def test_a_call_that_is_nested_without_end_is_text() -> None:
    text = "[tool call] run " + '{"a":' * 100_000 + "}"
    assert split_calls(text, ["run"]) == (text, [])
