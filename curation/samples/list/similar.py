"""Samples whose texts are nearly the same.

How alike two samples are is the Jaccard similarity of the three-word shingles of their texts (prompt's last turns and
answers). The candidates come from indexes: samples with the rarest words of the text, and the newest ones of the same
instance and repository. A sample that shares no rare word and is of another repository is not found.
"""

import re
from collections import Counter
from collections.abc import Iterator

from django.db import connections

from curation.samples.models import Sample, SampleQuerySet, SampleText
from curation.web.ids import find

WORDS = 3
# The lowest likeness, and the largest number of results.
ALIKE, MOST = 0.3, 50
# A word in more samples is not rare. Words looked up, rare ones used, candidates compared, and characters read of each.
RARE, LOOKED_UP, USED, COMPARED, READ = 200, 30, 12, 300, 20_000
_WORD = re.compile(r"[^\W_]+")
_MATCHES = {
    "sqlite": "SELECT rowid FROM sample_search WHERE sample_search MATCH %s LIMIT %s",
    "postgresql": (
        "SELECT sample_id FROM samples_sampletext WHERE words @@ to_tsquery('simple'::regconfig, %s) LIMIT %s"
    ),
}


def similar_samples(rows: SampleQuerySet, sample_id: str) -> dict[Sample, float]:
    """Return the samples among `rows` that are most like one of them, the most alike first, each with its likeness,
    from `ALIKE` to 1.

    `NotFound` for a sample that is not among them.
    """
    sample = find(rows, sample_id, "sample")
    text = SampleText.objects.filter(sample=sample).values_list("body", flat=True).first() or ""
    wanted = _shingles(text)
    if not wanted:
        return {}
    ids = _candidates(rows, sample, text)
    bodies = SampleText.objects.filter(pk__in=ids).values_list("pk", "body")
    others = ((pk, _shingles(body)) for pk, body in bodies.iterator())
    alike = {pk: len(wanted & other) / len(wanted | other) for pk, other in others}
    best = sorted((pk for pk in alike if alike[pk] >= ALIKE), key=lambda pk: (-alike[pk], pk))[:MOST]
    found = rows.in_bulk(best)
    return {found[pk]: alike[pk] for pk in best}


def _candidates(rows: SampleQuerySet, sample: Sample, text: str) -> list[int]:
    """Return the ids of up to `COMPARED` other samples: those with the most rare words, then those of its origin."""
    shared: Counter[int] = Counter()
    for matches in _rare_matches(text, rows.db):
        shared.update(matches)
    ids = [pk for pk, _ in shared.most_common(2 * COMPARED)]
    inside = set(rows.filter(pk__in=ids).values_list("pk", flat=True))
    chosen = dict.fromkeys(pk for pk in ids if pk in inside and pk != sample.pk)
    for column in ("instance_id", "repo"):
        value = getattr(sample, column)
        if value and len(chosen) < COMPARED:
            same = rows.filter(**{column: value}).exclude(pk=sample.pk).order_by("-id").values_list("pk", flat=True)
            chosen |= dict.fromkeys(same[:COMPARED])
    return list(chosen)[:COMPARED]


def _rare_matches(text: str, using: str) -> Iterator[list[int]]:
    """Yield the ids of the samples with each of its rarest words; long words are rarer, and looked up first."""
    words = sorted(set(_WORD.findall(text[:READ].lower())), key=lambda word: (-len(word), word))
    connection = connections[using]
    used = 0
    with connection.cursor() as cursor:
        for word in words[:LOOKED_UP]:
            term = f'"{word}"' if connection.vendor == "sqlite" else f"'{word}'"
            cursor.execute(_MATCHES[connection.vendor], [term, RARE + 1])
            matches = [pk for (pk,) in cursor.fetchall()]
            if 1 < len(matches) <= RARE:
                yield matches
                used += 1
                if used == USED:
                    return


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = text[:READ].casefold().split()
    return {tuple(words[start : start + WORDS]) for start in range(max(1, len(words) - WORDS + 1))} if words else set()
