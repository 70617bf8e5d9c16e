"""Fifty reviewers empty a queue of 5,000 samples over HTTP, on PostgreSQL and gunicorn with two processes."""

import pytest

from benchmarks.review import measure
from tests.postgres import Postgres

REVIEWERS, SAMPLES = 50, 5_000
READING_SECONDS = 1.0  # a person takes longer
DECIDES_WITHIN_MS = 300.0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_each_sample_is_decided_once_and_soon(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], postgres: Postgres
) -> None:
    monkeypatch.setenv("WEB_PROCESSES", "2")
    monkeypatch.setenv("BENCH_DATABASE_URL", postgres.url)
    found = measure(SAMPLES, clients=REVIEWERS, empty=True, reading=READING_SECONDS)
    with capsys.disabled():
        print(
            f"\n{REVIEWERS} reviewers, {SAMPLES:,} samples: {found.pairs_per_second:.0f} pairs/s, p95 of taking "
            f"{found.take_p95:.0f} ms, of deciding {found.decide_p95:.0f} ms, {found.cpu_ms:.1f} ms of processor a pair"
        )
    assert (found.decided, found.twice, found.wrong) == (SAMPLES, 0, ())
    assert found.decide_p95 < DECIDES_WITHIN_MS
