"""A filter is a URL, and means the same as JSON."""

import pytest
from django.http import QueryDict

from curation.samples.list.filters import SampleFilter
from curation.samples.models import Flag, Sample
from curation.web.problems import Invalid, NotFound, Problem
from tests.factories import make_project, make_run, make_sample, make_user


def from_url(query: str) -> SampleFilter:
    return SampleFilter.from_query(QueryDict(query))


def test_comma_is_or_and_repetition_is_and() -> None:
    wanted = from_url("flags=leak,flip&flags=loop&bucket=final")
    assert wanted.flags == (("leak", "flip"), ("loop",))
    assert wanted.bucket == (("final",),)


def test_json_says_the_same_in_three_ways() -> None:
    url = from_url("flags=leak,flip&text=fix")
    assert SampleFilter.from_json({"flags": "leak,flip", "text": "fix"}) == url
    assert SampleFilter.from_json({"flags": ["leak", "flip"], "text": "fix"}) == url
    assert SampleFilter.from_json({"flags": [["leak", "flip"]], "text": "fix"}) == url
    assert SampleFilter.from_json({"flags": [["leak"], ["flip"]]}) == from_url("flags=leak&flags=flip")
    assert SampleFilter.from_json({"axes": {"task": "cleanup", "difficulty": ["1", "2"]}}) == from_url(
        "axes=task=cleanup&axes=difficulty=1,difficulty=2"
    )


def test_a_stored_filter_reads_back() -> None:
    wanted = from_url("flags=leak,flip&flags=loop&axes=task=x&score_min=66&created_after=2026-01-02&text=%22a b%22 -c")
    assert SampleFilter.model_validate(wanted.model_dump(mode="json")) == wanted
    assert SampleFilter.model_validate_json(wanted.model_dump_json()) == wanted


def test_the_canonical_query_reads_back() -> None:
    wanted = from_url(
        r"source=a\,b.jsonl,c&flags=leak&flags=flip&score_max=80.5&created_before=2026-01-02T03:04:05Z&text=%22a%26b%22"
    )
    assert wanted.source == (("a,b.jsonl", "c"),)
    assert from_url(wanted.to_query()) == wanted
    assert SampleFilter().to_query() == ""
    assert SampleFilter().is_empty()
    assert from_url("bucket=&text=&score_min=").is_empty()


@pytest.mark.parametrize(
    ("query", "path", "said"),
    [
        ("colour=red", "colour", "no such filter; the filters are bucket"),
        ("bucket=purple", "bucket", "final, refined, defeat, unparsed"),
        ("status=done", "status", "pending, approved, rejected, needs_refine"),
        ("flags=big", "flags", "leak, flip"),
        ("kind=duel", "kind", "turn, trajectory"),
        ("axes=task", "axes", "axis=value"),
        ("run=seven", "run", "id of a run"),
        ("score_min=high", "score_min", "number"),
        ("score_min=101", "score_min", "100"),
        ("score_min=nan", "score_min", "finite"),
        ("score_min=1&score_min=2", "score_min", "only once"),
        ("score_min=80&score_max=60", "", "greater than"),
        ("created_after=yesterday", "created_after", "datetime"),
        ("created_after=2026-02-01&created_before=2026-01-01", "", "before"),
        ("text=" + "a" * 501, "text", "500"),
    ],
)
def test_what_it_does_not_understand_is_refused_by_name(query: str, path: str, said: str) -> None:
    with pytest.raises(Problem) as refused:
        from_url(query)
    assert refused.value.status == 400
    assert [error.path for error in refused.value.errors] == [path]
    assert said in refused.value.detail


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"bucket": "purple"}, "filter.bucket"),
        ({"colour": "red"}, "filter.colour"),
        ({"flags": 7}, "filter.flags"),
        ({"flags": [7]}, "filter.flags"),
        ({"axes": {"task": 7}}, "filter.axes"),
        ({"score_min": "x"}, "filter.score_min"),
        ({"source": "a\0"}, "filter.source"),
        ({"axes": {"task": "\ud800"}}, "filter.axes"),
        (["final"], "filter"),
    ],
)
def test_in_json_the_path_is_dotted(given: object, path: str) -> None:
    with pytest.raises(Invalid) as refused:
        SampleFilter.from_json(given)
    assert refused.value.status == 422
    assert {error.path for error in refused.value.errors} == {path}


@pytest.mark.django_db
class TestApply:
    def names(self, query: str) -> str:
        rows = from_url(query).apply(Sample.objects.of(self.project))
        return "".join(rows.order_by("id").values_list("preview", flat=True))

    @pytest.fixture(autouse=True)
    def rows(self) -> None:
        self.project, self.reviewer = make_project(), make_user("ada")
        self.run = make_run(self.project)
        make_sample(self.project, preview="a", score=90.0, bucket="final", source="one", model="m1", run=self.run)
        make_sample(self.project, preview="b", flags=Flag.LEAK | Flag.LOOP, status="approved", decided_by=self.reviewer)
        make_sample(self.project, preview="c", score=None, bucket="unparsed", repo="acme/x", flags=Flag.FLIP)
        make_sample(
            self.project, preview="d", score=10.0, bucket="defeat", kind="trajectory", action_style="read",
            axes={"task": "cleanup", 'odd "key"': "it's, odd"},
        )  # fmt: skip
        make_sample(make_project(), preview="X", score=90.0, bucket="final", source="one", flags=Flag.LEAK)

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            ("", "abcd"),
            ("bucket=final", "a"),
            ("bucket=final,defeat", "ad"),
            ("bucket=final&bucket=defeat", ""),
            ("status=approved", "b"),
            ("kind=trajectory", "d"),
            ("kind=turn,trajectory", "abcd"),
            ("flags=leak", "b"),
            ("flags=leak,flip", "bc"),
            ("flags=leak&flags=loop", "b"),
            ("flags=leak&flags=flip", ""),
            ("model=m1", "a"),
            ("source=one", "a"),
            ("repo=acme/x", "c"),
            ("action_style=read", "d"),
            ("reviewer=ada", "b"),
            ("reviewer=nobody", ""),
            ("axes=task=cleanup", "d"),
            ("axes=task=cleanup,task=other", "d"),
            ("axes=task=other", ""),
            (r"axes=odd%20%22key%22=it's\, odd", "d"),
            ("score_min=70", "ab"),
            ("score_max=70", "bd"),
            ("score_min=70&score_max=70", "b"),
            ("created_after=2020-01-01", "abcd"),
            ("created_before=2020-01-01", ""),
        ],
    )
    def test_each_filter(self, query: str, names: str) -> None:
        assert self.names(query) == names

    def test_run(self) -> None:
        assert self.names(f"run={self.run.pk}") == "a"

    def test_a_run_of_another_project_is_not_found(self) -> None:
        foreign = make_run(make_project())
        with pytest.raises(NotFound, match=str(foreign.pk)):
            self.names(f"run={foreign.pk}")

    def test_rows_of_no_project_are_a_mistake_of_the_caller(self) -> None:
        with pytest.raises(TypeError):
            from_url("run=1").apply(Sample.objects.all())
