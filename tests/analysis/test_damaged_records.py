"""Records with anything in the place of anything: the page shows what there is."""

import json
import random

import pytest
import yaml
from made_up_run import make_run, write_run
from refusals import refused

from azr_population.analysis import html
from azr_population.analysis.report import write_report
from azr_population.cli import main
from azr_population.errors import UserError

ODD = (None, 7, -3.5, "x", [], {}, [1, "a"], {"a": 1}, True, [[1]], "1", 1e300)
CONFIGS = ("seed: 1", "evolution: 3", "[1, 2]", "population: 4", "evolution: {fitness: [1]}")


def damaged(value, chance, share):
    if chance.random() < share:
        return chance.choice(ODD)
    if isinstance(value, dict):
        remaining = {key: item for key, item in value.items() if chance.random() > share / 2}
        return {key: damaged(item, chance, share) for key, item in remaining.items()}
    return [damaged(item, chance, share) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("seed", range(12))
def test_damage_costs_no_more_than_what_it_hit(write, monkeypatch, seed):
    monkeypatch.setattr(html, "bundle", lambda: "")
    chance = random.Random(seed)
    share = (0.01, 0.05, 0.2)[seed % 3]
    records = {
        name: [damaged(row, chance, share) for row in rows]
        for name, rows in make_run(teachers=2, students=3).items()
    }
    config = CONFIGS[seed % len(CONFIGS)]
    if not isinstance(yaml.safe_load(config), dict):
        with pytest.raises(UserError):
            write(config=config, **records)
        return
    run = write(config=config, **records)
    for name in records:
        with (run.path / f"{name}.jsonl").open("a") as file:
            file.write(json.dumps(records[name][-1])[:20])
    assert "Incomplete: 1" in write_report(run.path).read_text(encoding="utf-8")


def test_a_folder_of_runs_is_listed(tmp_path, capsys):
    folder = tmp_path / "runs"
    for place in ("demo", "recipes/nano/4t4s/seed_1"):
        write_run(folder / place)
    (folder / "demo" / "report.html").touch()
    (folder / "notes").mkdir()
    assert main(["report", str(folder)]) == 0
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{folder}/demo ") and "report.html" in first
    assert second.startswith(f"{folder}/recipes/nano/4t4s/seed_1  ")
    assert last.startswith(f"{folder} ")


def test_a_folder_without_runs_is_no_run(tmp_path, capsys):
    assert str(tmp_path) in refused(capsys, "report", tmp_path)
