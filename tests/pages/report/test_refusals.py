from __future__ import annotations

from azr_population.pages.report.refusals import MAX_REASONS, invalid_reasons


def test_counts_by_reason_the_most_frequent_first() -> None:
    metrics = [
        {"step": 1, "reasons": {"ok": 6, "error": 1, "constant": 3}},
        {"step": 2, "reasons": {"ok": 10}},
        {"step": 3},
    ]
    assert invalid_reasons(metrics) == {
        "names": ["constant", "error"],
        "buckets": [
            {"first": 1, "last": 1, "proposed": 10, "counts": [3, 1]},
            {"first": 2, "last": 2, "proposed": 10, "counts": [0, 0]},
        ],
    }


def test_long_runs_are_put_into_spans_without_losing_a_proposal() -> None:
    metrics = [{"step": i, "reasons": {"ok": 1, "error": 2}} for i in range(1, 121)]
    buckets = invalid_reasons(metrics)["buckets"]
    assert len(buckets) == 40
    assert buckets[0] == {"first": 1, "last": 3, "proposed": 9, "counts": [6]}
    assert (buckets[-1]["first"], buckets[-1]["last"]) == (118, 120)
    assert sum(bucket["proposed"] for bucket in buckets) == 360


def test_rare_reasons_are_told_together() -> None:
    reasons = {f"reason_{i}": 20 - i for i in range(12)}
    found = invalid_reasons([{"step": 1, "reasons": {"ok": 5, **reasons}}])
    assert len(found["names"]) == MAX_REASONS
    assert found["names"][-1] == "other"
    assert sum(found["buckets"][0]["counts"]) == sum(reasons.values())


def test_nothing_and_odd_records() -> None:
    assert invalid_reasons([]) == {"names": [], "buckets": []}
    odd = [{"step": 1, "reasons": "x"}, {"step": 2, "reasons": {"error": None}}]
    assert invalid_reasons(odd)["names"] == []
