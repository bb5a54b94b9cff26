"""What is said of overrides that Hydra would take, and no run has a use for."""

import pytest
from refusals import refuses

from azr_population.config.effects import INCIDENTAL, touches_only
from azr_population.config.inside_azr import PopulationSettings
from azr_population.config.load import config_from_file, load_config, to_yaml
from azr_population.config.schema import Config
from azr_population.config.section import meant, unknown_key
from azr_population.errors import UserError


@pytest.mark.parametrize(
    ("override", "thing"),
    [
        ("+foo=1", "foo"),
        ("++run.stepz=3", "did you mean run.steps=3?"),
        ("++run={stepz: 3}", "did you mean run.steps?"),
        ("+population.foo=1", "population.foo"),
        ("hydra.run.dir=x", "hydra.run.dir"),
        ("~seed", "~seed"),
        ("task.types=code_o,code_i", "task.types"),
        ("seed=1,2", "seed=1,2"),
        ("seed=range(1,4)", "seed=range(1,4)"),
        ("run.dir=runs/a=b", "\"run.dir='runs/a=b'\""),
        ("run.dir=${nothing}", "nothing"),
    ],
)
def test_each_in_one_line(override, thing, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(to_yaml(load_config([])))
    for read in (load_config, lambda overrides: config_from_file(path, overrides)):
        with refuses(thing):
            read([override])


def test_pluses_mean_nothing():
    assert load_config(["+run.steps=3"]).run.steps == load_config(["++run.steps=3"]).run.steps == 3
    assert load_config(["+population=2t2s"]).population.name == "2t2s"


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        (["population=4t4s", "population.teachers=3"], "3t4s"),
        (["population=single", "population.teachers=2", "population.students=1"], "2t1s"),
        (["population.teachers=0", "population.students=0"], "single"),
        (["population=4t4s", "population.teachers=3", "population.name=mine"], "mine"),
    ],
)
def test_a_population_is_called_what_it_is(overrides, name):
    assert load_config(overrides).population.name == name


def test_a_written_configuration_takes_fields_and_groups(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(to_yaml(load_config(["population=2t2s"])))
    changed = config_from_file(
        path, ["base.lora.target_modules=[q_proj]", "evolution.operators.dare+full_gaussian=0.5"]
    )
    assert changed.base.lora.target_modules == ["q_proj"]
    assert changed.evolution.operators["dare+full_gaussian"] == 0.5
    chosen = config_from_file(
        path, ["population.batch_size=12", "population=4t4s", "evolution=none"]
    )
    assert (chosen.population.name, chosen.population.teachers) == ("4t4s", 4)
    assert (chosen.population.batch_size, chosen.evolution.interval) == (12, 0)
    path.write_text(to_yaml(chosen))
    again = config_from_file(path, ["evolution=pbt"])
    assert again.evolution == load_config([]).evolution and again.population.batch_size == 12
    with refuses("population"):
        config_from_file(path, ["population=5t5s"])


BOMB = "a: &a [x, x]\nb: &b [*a, *a]\n"


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        "[" * 5000,
        "- " * 100_000,
        "{a: " * 100_000,
        "3",
        "seed: 1\nseed: 2",
        "seed: !!python/object/apply:os.getcwd []",
        "population: 3",
        "run: {dir: '${oc.env:HOME}'}",
    ],
    ids=lambda text: text[:20],
)
def test_a_stored_configuration_of_a_stranger(tmp_path, text):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with refuses("population" if text == "population: 3" else path):
        config_from_file(path)


def test_where_azr_keeps_a_run_is_no_difference():
    assert touches_only("trainer.default_local_dir", INCIDENTAL)
    assert not touches_only("trainer.total_epochs", INCIDENTAL)


@pytest.mark.parametrize(
    "override",
    [
        "run.steps=true",
        "population.student_lr=true",
        "population.batch_size=False",
        "evolution.operators.dare=true",
        "evolution.options.dare.p=true",
        "evolution.hyperparameters.lr.init=[true,1e-3]",
        "seed=true",
    ],
)
def test_true_and_false_are_not_numbers(override):
    with refuses("not true or false"):
        load_config(["evolution=pbt_hyper", override])


@pytest.mark.parametrize(
    "override",
    [
        "run.steps=1e18",
        "population.student_lr=1e300",
        "population.kl_loss_coef=1e300",
        "engine.importance_sampling_cap=1e300",
        "task.max_program_chars=1000000000000000000000000000000",
        "evolution.hyperparameters.lr.init=[1e300,1e308]",
        "evolution.operators.dare=1e300",
    ],
)
def test_a_number_that_no_run_can_have_is_refused(override):
    with refuses(override.split("=")[0].removesuffix(".dare")):
        load_config(["evolution=pbt_hyper", override])
    assert load_config([f"seed={2**100}"]).seed == 2**100


@pytest.mark.parametrize("word", ["1e3", "0755", "1_000", "1:30", "nan", "true", "1.50", "2024"])
def test_a_name_stays_as_it_is_typed_or_is_refused(word, tmp_path):
    config = load_config([f"run.dir={word}"])
    assert config.run.dir == word
    file = tmp_path / "config.yaml"
    file.write_text(to_yaml(config))
    assert config_from_file(file).run.dir == word
    file.write_text(f"run:\n  dir: {word}\n")
    if word != "nan":
        with refuses("quote"):
            config_from_file(file)


def test_a_number_in_a_list_of_names_is_to_be_quoted():
    with refuses("quote"):
        load_config(["base.lora.target_modules=[q_proj,1e3]"])
    quoted = load_config(["base.lora.target_modules=[q_proj,'1e3']"])
    assert quoted.base.lora.target_modules == ["q_proj", "1e3"]


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("lr", "student_lr"),
        ("matchmaking.learning_rate", "student_lr"),
        ("size", "teachers population.students"),
        ("out", "run_dir"),
        ("evolution.enabled", "evolution.interval=0"),
        ("evolutoin.interval", "evolution.interval"),
        ("sed", "seed"),
    ],
)
def test_hints_inside_azr_name_keys_that_are_there(key, hint):
    error = unknown_key(PopulationSettings, f"population.{key}", "population.")
    assert str(error) == f"population.{key} is unknown; did you mean population.{hint}?"


def test_a_key_that_only_a_local_run_has_is_no_hint_inside_azr():
    with refuses("population.model is unknown; population has optimizer,"):
        PopulationSettings.checked({"model": "x"}, "population.")


def test_every_hint_for_a_key_of_another_program_exists():
    words = ("lr", "learning_rate", "output_dir", "out", "model", "size", "enabled", "rank", "x.k")
    for kind, prefix in ((Config, ""), (PopulationSettings, "population.")):
        keys = set(kind.keys(prefix))
        for word in words:
            hints = meant(kind, f"{prefix}{word}", "4", prefix).split()
            assert {hint.partition("=")[0] for hint in hints} <= keys, (prefix, word, hints)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "evolution.operators=[dare]",
            "evolution.operators=['dare'] is refused: it should be names with values, such as "
            "evolution.operators.NAME=VALUE",
        ),
        (
            "population.init_from.foo=x",
            "population.init_from.foo is unknown: its last part should be 'teacher', 'student' or "
            "'agent'",
        ),
        ("evolution.operators.dare=true", "evolution.operators.dare=True is refused: it should be"),
        ("evolution.operators.dare=2e9", "evolution.operators.dare=2000000000.0 is refused: it"),
        ("evolution.options.dare.p=true", "evolution.options.dare.p=True is refused: it should be"),
        ("run=[a]", "run is a section and takes no value; set a field of it, such as run.dir"),
        ("base.lora.target_modules={a: 1}", "base.lora.target_modules={'a': 1} is refused: it"),
    ],
)
def test_a_value_of_the_wrong_shape_is_told_by_its_own_key(override, message):
    with pytest.raises(UserError) as refusal:
        load_config([override])
    assert str(refusal.value).startswith(message)
    assert message.startswith(str(refusal.value.key))


def test_an_entry_that_contradicts_another_is_told_by_its_key():
    with refuses("engine.vllm.a.b is refused"):
        load_config(["engine.vllm.a=[1]", "engine.vllm.a.b=2"])


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("run: [a]", "run"),
        ("evolution: {operators: [dare]}", "evolution.operators"),
        ("base: {lora: {target_modules: {a: 1}}}", "base.lora.target_modules"),
    ],
)
def test_a_stored_list_for_a_mapping_is_told_by_its_key(tmp_path, text, key):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as refusal:
        config_from_file(path, ["population=2t2s"])
    assert refusal.value.key == key and "\n" not in str(refusal.value)
