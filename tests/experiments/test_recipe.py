"""The recipes that ship, and what a mistake in one is told like."""

import pytest
from hydra import compose, initialize

from azr_population.config.inside_azr import register_arms
from azr_population.config.load import load_config
from azr_population.errors import UserError
from azr_population.experiments.arms import read_arms, recipes_folder, seed_numbers
from azr_population.experiments.recipe import read_recipe, recipe_names
from azr_population.hosts.azr.settings import read_settings
from azr_population.runs.diagnostics import find_measure

ISSUE = [
    "table1_benchmarks",
    "table2_wallclock",
    "fig3_dynamics",
    "fig4_complexity",
    "fig5_ratings",
    "fig6_operator_retention",
    "fig9_coverage",
    "fig19_lengths",
    "ablation_base",
    "ablation_evolution",
    "ablation_population_size",
    "ablation_rows",
    "ablation_shaping",
    "lineage",
    "real_base",
    "line1_rates",
    "line1_reward",
    "line1_roles",
    "line2_arms_race",
    "line3_rows",
    "programme1_roles",
    "programme2_rows",
    "programme3_arms_race",
    "programme4_fitness",
    "programme5_evolution",
    "programme6_short_race",
]


def test_a_programme_says_first_what_it_is_to_show():
    arms = read_arms()
    for name in recipe_names():
        recipe = read_recipe(name, arms)
        if recipe.settings == "programme":
            assert recipe.primary and recipe.decision
            assert "exam.seed=1121" in arms.scales["programme"].common
            seeds = seed_numbers(recipe.seeds or arms.scales["programme"].seeds)
            assert min(seeds) == 11
            for arm in recipe.arms:
                assert not arms.find(arm).fork or recipe.paired


def test_a_line_says_first_what_it_is_to_show_on_seeds_and_an_exam_of_its_own():
    arms = read_arms()
    own = arms.scales["longtail"]
    recipes = [read_recipe(name, arms) for name in recipe_names()]
    lines = [recipe for recipe in recipes if recipe.settings == "longtail" and recipe.primary]
    assert "exam.seed=8181" in own.common and min(seed_numbers(own.seeds)) == 31
    assert [line.name for line in lines] == [
        "line1_rates",
        "line1_reward",
        "line1_roles",
        "line2_arms_race",
        "line3_rows",
    ]
    for line in lines:
        assert line.primary and line.decision
        assert all(one.looks.get(len(seed_numbers(own.seeds))) for one in line.primary)


def test_the_clone_of_the_best_is_a_clone():
    arms = read_arms()
    common = arms.scales["programme"].common
    evolution = load_config([*common, *arms.find("4t4s_clone").nano]).evolution
    assert [name for name, weight in evolution.operators.items() if weight] == ["full_gaussian"]
    assert evolution.options == {"full_gaussian": {"eps": 0}}


def test_every_recipe_is_there_in_the_order_of_the_paper():
    assert recipe_names() == ISSUE


@pytest.mark.parametrize("name", ISSUE)
def test_a_recipe_names_arms_and_diagnostics_that_exist_and_has_its_page(name):
    arms = read_arms()
    recipe = read_recipe(name, arms)
    for one in (*recipe.figures, *recipe.rows):
        find_measure(one.series)
    assert recipe.arms or recipe.scripts
    assert recipe.baseline in ("", *recipe.arms)
    assert len({figure.name for figure in recipe.figures}) == len(recipe.figures)
    for script in recipe.scripts:
        assert (recipe.folder / script.split()[0]).is_file()
    assert "TODO" not in (recipe.folder / "README.md").read_text()
    if "7b" in recipe.scales:
        assert all(arms.find(arm).azr for arm in recipe.arms)


@pytest.mark.parametrize("name", read_arms().arms)
def test_the_overrides_of_every_arm_compose(name):
    arms = read_arms()
    arm = arms.find(name)
    config = load_config([*arms.scales["nano"].common, *arm.nano])
    assert arm.seconds > 0
    first = load_config([*arms.scales["nano"].common, *arms.find("single").nano])
    factor = {"single_double": 2, "single_octuple": 8, "single_all_rows": 16}.get(name, 1)
    for settings in ("programme", "longtail"):
        load_config([*arms.scales[settings].common, *arm.nano])
    assert config.population.rows == factor * first.population.rows, "rows per member are equal"
    assert config.population.attempts == first.population.attempts


@pytest.mark.parametrize("name", [arm.name for arm in read_arms().arms.values() if arm.azr])
def test_the_overrides_of_every_arm_fit_azrs_population_group(name):
    with initialize(version_base="1.3"):
        register_arms()
        node = compose(overrides=list(read_arms().find(name).azr)).population
    settings = read_settings(node)
    assert f"+population={settings.name}" in read_arms().find(name).azr


def test_arms_differ_from_their_plain_form_in_what_they_are_about():
    arms = read_arms()
    shaped = load_config(arms.find("1t1s").nano)
    unshaped = load_config(arms.find("1t1s_unshaped").nano)
    # None is all that the domain can refuse.
    assert shaped.task.refuse is None and unshaped.task.refuse == []
    assert shaped.population.duplicate_price > 0 and unshaped.population.duplicate_price == 0.0
    still = load_config(arms.find("4t4s_no_evolution").nano)
    random = load_config(arms.find("4t4s_random").nano)
    assert still.evolution.interval == 0
    assert (random.evolution.selection, random.evolution.replacement) == ("random", "oldest")
    assert arms.find("1t1s_weak").base == "weak"


def test_unknown_names_get_the_list():
    with pytest.raises(UserError, match=r"did you mean fig3_dynamics.*table1_benchmarks"):
        read_recipe("fig3_dynamix", read_arms())
    with pytest.raises(UserError, match=r"no arm 3t3s.*4t4s"):
        read_arms().find("3t3s")


@pytest.fixture
def folder(tmp_path):
    """A folder of recipes with one recipe, made of the text that is written to it."""
    (tmp_path / "arms.yaml").write_text((recipes_folder() / "arms.yaml").read_text())
    (tmp_path / "mine").mkdir()

    def write(text):
        head = "title: t\nfigure: f\nshows: s\narms: [single]\n"
        (tmp_path / "mine" / "recipe.yaml").write_text(head + text)
        return read_recipe("mine", read_arms(tmp_path), tmp_path)

    return write


def test_a_recipe_of_ones_own_is_read(folder):
    recipe = folder(
        "rows: [{label: a, series: lines}]\nfigures: [{series: mu, title: t, label: l}]"
    )
    assert recipe.rows[0].take == "late"
    assert recipe.figures[0].name == "mu"
    assert recipe.figures[0].of == ("",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("setps: 3", "setps means nothing here"),
        ("rows: [{label: a, series: lines, take: latest}]", "take=latest is unknown"),
        ("rows: [{series: lines}]", "row in .*missing .*label"),
        ("summary: prose", "summary=prose is unknown"),
        ("figures: [{series: lines, titel: t}]", "titel means nothing here"),
        ("rows: [", "cannot be read"),
    ],
)
def test_a_mistake_in_a_recipe_is_told_in_one_line(folder, text, said):
    with pytest.raises(UserError, match=said) as told:
        folder(text)
    assert "\n" not in str(told.value)


def test_an_arm_that_wants_a_base_nobody_makes_is_refused(tmp_path):
    (tmp_path / "arms.yaml").write_text(
        "scales: {nano: {steps: 1, seeds: 1}}\n"
        "arms: {a: {title: a, population: single, base: strong}}\n"
    )
    with pytest.raises(UserError, match="wants base strong"):
        read_arms(tmp_path)
