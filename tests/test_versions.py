"""What is told of where the package comes from."""

from refusals import refuses

from azr_population import versions


def test_what_is_not_installed_has_no_version():
    assert versions.installed("pytest")
    assert versions.installed("no-such-package") is None


def test_the_commit_is_that_of_the_package_and_of_no_other_checkout(tmp_path, monkeypatch):
    commit = versions.commit()
    assert commit is None or len(commit.removesuffix("+changes")) == 40
    monkeypatch.setattr(versions, "__file__", str(tmp_path / "versions.py"))
    assert versions.commit() is None


def test_a_run_of_an_older_version_names_that_version(tmp_path):
    import json

    from azr_population.runs import RunDirectory

    (tmp_path / "config.yaml").write_text("exam: {every: 5}\n")
    (tmp_path / "environment.json").write_text(
        json.dumps({"packages": {"azr-population": "0.1.0"}})
    )
    with refuses("0.1.0"):
        RunDirectory(tmp_path).config()
