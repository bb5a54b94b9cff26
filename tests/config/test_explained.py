from pathlib import Path

from azr_population.config.explained import explained, reference
from azr_population.config.load import config_from_file, load_config


def test_a_printed_configuration_has_meanings_and_bounds_and_is_read_back(tmp_path):
    config = load_config(["population=2t2s", "evolution.operators.dare=2"])
    text = explained(config)
    lines = text.splitlines()
    place = lines.index("  samples_per_task: 8")
    assert lines[place - 2].startswith(
        "  # Answers drawn per valid task to estimate its solve rate"
    )
    bounds = " ".join("".join(lines[place - 2 : place]).replace("#", "").split())
    assert bounds.endswith("(AZR's n_samples); at least 1 and at most 1000")
    assert lines[lines.index("evolution:") - 1].startswith("# Replacement of the worst members")
    assert "  # 0 teachers and 0 students is the single agent" in text
    (tmp_path / "config.yaml").write_text(text)
    assert config_from_file(tmp_path / "config.yaml") == config


def test_the_page_of_the_reference_is_the_one_that_is_made():
    """python -m azr_population.config.explained > docs/reference.md"""
    page = Path(__file__).parents[2] / "docs" / "reference.md"
    assert page.read_text(encoding="utf-8") == reference()
