"""`report` of a folder of runs."""

from made_up_run import write_run

from azr_population.cli import main


def test_a_folder_of_runs_is_listed(tmp_path, capsys):
    folder = tmp_path / "runs"
    for place in ("demo", "recipes/nano/4t4s/seed_1"):
        write_run(folder / place)
    (folder / "demo" / "report.html").touch()
    (folder / "notes").mkdir()
    assert main(["report", str(folder)]) == 0
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{folder}/demo ") and first.endswith(" steps, report.html")
    assert second.startswith(f"{folder}/recipes/nano/4t4s/seed_1  ")
    assert last == f"{folder} holds 2 runs; name one of them"


def test_a_folder_without_runs_is_no_run(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert f"no run at {tmp_path}" in capsys.readouterr().err
