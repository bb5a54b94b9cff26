import pytest

from azr_population.config.load import config_from_file, load_config, to_yaml
from azr_population.errors import UserError
from azr_population.hosts.local.check import check_config


def test_defaults_are_4t4s_on_the_nano_base_with_all_eight_operators():
    config = load_config([])
    assert (config.population.teachers, config.population.students) == (4, 4)
    assert config.base.name == "nano" and len(config.evolution.operators) == 8


@pytest.mark.parametrize(
    ("arm", "teachers", "students"),
    [("single", 0, 0), ("1t1s", 1, 1), ("2t2s", 2, 2), ("4t4s", 4, 4), ("8t8s", 8, 8)],
)
def test_arms_differ_in_members_but_not_in_rows(arm, teachers, students):
    population = load_config([f"population={arm}"]).population
    assert (population.name, population.teachers, population.students) == (arm, teachers, students)
    assert population.rows == load_config([]).population.rows


def test_overrides_of_groups_and_fields():
    config = load_config(["evolution=none", "task=code_i", "run.steps=7", "population.rows=96"])
    assert config.evolution.interval == 0
    assert config.task.types == ["code_i"]
    assert (config.run.steps, config.population.rows) == (7, 96)


def test_single_operators_can_be_weighed():
    operators = load_config(["evolution.operators.dare=0"]).evolution.operators
    assert operators["dare"] == 0 and operators["layer_wise"] == 1


def test_new_entries_of_dict_fields_are_ordinary_overrides():
    config = load_config(
        [
            "evolution.operators.neftune_style=2",
            "evolution.operators.svd_subspace+full_gaussian=0.5",
            "evolution.options.dare.p=0.5",
            "evolution.options.full_gaussian.eps=0.3",
            "+evolution.selection_options.top=0.7",
            "matchmaking.weighting=hard",
            "matchmaking.options.k=3",
            "evolution.adaptive=true",
        ]
    )
    evolution = config.evolution
    assert len(evolution.operators) == 10 and evolution.operators["neftune_style"] == 2
    assert evolution.operators["svd_subspace+full_gaussian"] == 0.5
    assert evolution.options == {"dare": {"p": 0.5}, "full_gaussian": {"eps": 0.3}}
    assert evolution.selection_options == {"top": 0.7} and evolution.adaptive
    assert config.matchmaking.options == {"k": 3.0}


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("population=5t5s", r"population=5t5s is unknown; choose one of: 1t1s, 2t2s, 4t4s"),
        ("run.stepz=3", r"stepz"),
        ("nonsense=1", r"nonsense"),
        ("run.steps=many", r"many.*run\.steps"),
        ("run.steps=-1", r"run\.steps=-1 is out of range; it must be at least 0"),
        ("population.rows=1", r"population\.rows=1 is out of range; it must be at least 2"),
        ("population.teacher_reward=kind", r"kind.*adversarial"),
        ("matchmaking.weighting=fair", r"fair.*balanced"),
        ("evolution.fitness=height", r"height.*conservative_rating"),
        ("evolution.selection=lottery", r"lottery.*truncation"),
        ("evolution.operators.svd=1", r"svd.*svd_subspace"),
        ("+evolution.operators.svd=1", r"svd.*svd_subspace"),
        ("evolution.fraction=1.5", r"evolution\.fraction=1\.5 .* at least 0 and at most 1"),
        ("evolution.elites=0", r"evolution\.elites=0 .* at least 1"),
        ("evolution.ready=-1", r"evolution\.ready=-1 .* at least 0"),
        ("matchmaking.tau=-1", r"matchmaking\.tau=-1\.0 .* at least 0"),
        ("matchmaking.draw_probability=1", r"draw_probability=1\.0 .* at least 0 and below 1"),
        ("population.student_lr=inf", r"population\.student_lr=inf is no number"),
        ("logger.mode=loud", r"logger\.mode=loud is unknown; choose from online, offline"),
        ("task.types=[code_x]", r"task\.types=code_x is unknown; choose from code_f, code_i"),
        ("task.types=[]", r"task\.types is empty"),
        ("task.refuse=[hard]", r"task\.refuse=hard is unknown"),
        ("referee=mine", r"^referee is a section and takes no value; .* such as referee\.workers$"),
        ("base=gpt5", r"base=gpt5 is unknown; choose one of: hf, nano"),
        ("run={stepz: 3}", r"run\.stepz is unknown; did you mean run\.steps"),
        ("base=hf", r"base\.path has no value"),
        ("base.dtype=int8", r"base\.dtype=int8 is unknown"),
        ("population.students=0", r"population\.teachers=4, population\.students=0: give at least"),
        ("run.steps", r"run\.steps"),
        ("evolution.operators.dare+layer_wise=1", r"layer_wise needs two parents"),
        ("evolution.operators.dare=much", r"'much'.*could not be converted"),
        ("evolution.options.svd.k=1", r"operator=svd is unknown.*svd_subspace"),
        ("evolution.options.dare.q=0.5", r"dare has no option q; its options: p"),
        ("evolution.options.dare.p=7", r"p=7\.0 must be a number between 0 and 0\.99"),
        ("evolution.options.svd_subspace.k=8", r"k=8 must be a whole number in 1\.\.7"),
        ("evolution.options.dare+full_gaussian.p=1", r"given by operator"),
        ("evolution.selection_options.size=3", r"truncation has no such option; it has: top"),
        ("matchmaking.options.k=2", r"balanced has no such option; it has: none"),
        ("evolution.adaptive_tau=0", r"adaptive_tau=0\.0 .* above 0"),
        ("evolution.operators.dare=-1", r"evolution\.operators\.dare=-1\.0 must be a number"),
        ("base.lora.rank=1", r"svd_subspace needs rank 2 or more.*this is rank 1"),
    ],
)
def test_a_mistake_is_told_in_one_line_that_names_it(override, said):
    with pytest.raises(UserError, match=said) as caught:
        check_config(load_config([override]))
    assert "\n" not in str(caught.value)


def test_a_mix_that_no_survivor_can_use_is_refused_before_the_run():
    crossovers = ("dare", "layer_wise", "svd_subspace", "extrapolative")
    names = load_config([]).evolution.operators
    only = [f"evolution.operators.{n}={1.0 if n in crossovers else 0.0}" for n in names]
    with pytest.raises(UserError, match="only 1 survive; weigh a mutation"):
        check_config(load_config(["population=2t2s", *only]))
    check_config(load_config(["population=4t4s", *only]))
    check_config(load_config(["population=1t1s", *only]))


def test_a_larger_base_brings_limits_that_suit_it():
    config = load_config(["base=hf", "base.path=somewhere", "task.references=2"])
    assert (config.task.max_program_chars, config.task.references) == (4000, 2)
    assert config.base.lora.rank == 32 and config.base.lora.target_modules == ["all-linear"]


def test_a_saved_configuration_comes_back_whole(tmp_path):
    entries = ["evolution.operators.dare+full_gaussian=0.5", "evolution.options.dare.p=0.5"]
    config = load_config(["population=2t2s", "seed=9", *entries])
    path = tmp_path / "config.yaml"
    path.write_text(to_yaml(config))
    assert config_from_file(path) == config
    assert config_from_file(path, ["run.steps=40"]).run.steps == 40
    with pytest.raises(UserError, match="nowhere"):
        config_from_file(tmp_path / "nowhere" / "config.yaml")
    with pytest.raises(UserError, match="stepz"):
        config_from_file(path, ["run.stepz=40"])
