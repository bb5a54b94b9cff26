import json

from perf import ratings


def test_half_of_trueskills_drift_lags_least_at_an_equal_log_loss(tmp_path, capsys):
    stored = json.loads((ratings.RESULTS).read_text())
    assert {rule: row["tau"] for rule, row in stored.items()} == ratings.DRIFTS
    before, after = (
        stored["TrueSkill's tau once a match"]["mean"],
        stored["half of it a game"]["mean"],
    )
    assert after["older"] - after["children"] < 0.1 < before["older"] - before["children"]
    assert after["log_loss"] < before["log_loss"] and after["replaced"] < before["replaced"]


def test_a_replay_of_one_run_has_its_matches_and_births(monkeypatch):
    folder = ratings.RUNS / "seed_81"
    metrics = ratings.lines(folder / "metrics.jsonl.gz")
    wins = ratings.fit_wins([metrics])
    assert [wins(rate) for rate in (0.3, 0.7)] == sorted(wins(rate) for rate in (0.3, 0.7))
    monkeypatch.setattr(ratings, "GAMES", 8)
    result = ratings.replay(folder, 25 / 600, wins, 20)
    assert len(result["ages"]) == 4 and set(result["ages"]) <= {0, 10, 15}
    assert -3 < result["older"] < 3 and 0 < result["log_loss"] < 0.5
