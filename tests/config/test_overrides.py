"""What is said of overrides that Hydra would take, and no run has a use for."""

import pytest
from refusals import refuses

from azr_population.config.load import config_from_file, load_config, load_fork, to_yaml
from azr_population.errors import UserError


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("+foo=1", "foo is unknown; see azr-population train --config"),
        ("++run.stepz=3", "run.stepz is unknown; did you mean run.steps?"),
        ("++run={stepz: 3}", "run.stepz is unknown; did you mean run.steps?"),
        ("+population.foo=1", "population.foo is unknown; did you mean population?"),
        ("hydra.run.dir=x", "hydra.run.dir is unknown; did you mean run.dir?"),
        ("~seed", "~seed: no key can be taken away; leave it out for its default"),
        ("task.types=code_o,code_i", "a list has brackets: task.types=[code_o,code_i]"),
        (
            "+population=2t2s",
            "+population=2t2s: leave out the plus, which only AZR's command needs: population=2t2s",
        ),
        ("++population=2t2s", "leave out the plus"),
        ("+run.steps=3", "leave out the plus, which only AZR's command needs: run.steps=3"),
        (
            "seed=1,2",
            "seed=1,2: a run has one value; for several runs: "
            "for v in 1 2; do azr-population train seed=$v run.dir=runs/seed_$v; done",
        ),
        ("seed=range(1,4)", "for v in 1 2 3; do"),
        ("run.dir=runs/a=b", "quote a value that holds signs, as in \"run.dir='runs/a=b'\""),
    ],
)
def test_each_in_one_line(override, said, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(to_yaml(load_config([])))
    for read in (load_config, lambda overrides: config_from_file(path, overrides)):
        with pytest.raises(UserError) as caught:
            read([override])
        assert said in str(caught.value) and "\n" not in str(caught.value)


def test_two_pluses_set_what_there_is():
    assert load_config(["++run.steps=3"]).run.steps == 3


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


def test_a_fork_starts_from_the_settings_of_its_run(tmp_path):
    path = tmp_path / "a" / "config.yaml"
    path.parent.mkdir()
    typed = ["population=2t2s", "population.batch_size=12", "run.dir=x", "run.steps=7"]
    path.write_text(to_yaml(load_config(typed)))
    forked = load_fork([f"run.init_from={path.parent}@5", "population.teacher_lr=0", "run.dir=y"])
    assert (forked.population.name, forked.population.batch_size, forked.run.steps) == (
        "2t2s",
        12,
        7,
    )
    assert (forked.population.teacher_lr, forked.run.dir) == (0.0, "y")
    assert load_fork([f"run.init_from={path.parent}@5"]).run.dir == load_config([]).run.dir
    assert load_fork(["seed=3"]) == load_config(["seed=3"])


BOMB = "a: &a [x, x]\nb: &b [*a, *a]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, "holds aliases"),
        ("[" * 5000, "is no readable YAML"),
        ("- " * 100_000, "is no readable YAML"),
        ("{a: " * 100_000, "is no readable YAML"),
        ("3", "is no readable YAML"),
        ("seed: 1\nseed: 2", r"is no readable YAML \(line 2\)"),
        ("seed: !!python/object/apply:os.getcwd []", "is no readable YAML"),
        ("population: 3", "population is a section"),
    ],
)
def test_a_stored_configuration_of_a_stranger(tmp_path, text, said):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=said) as caught:
        config_from_file(path)
    assert "\n" not in str(caught.value)
