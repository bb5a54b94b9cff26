import math
from pprint import pformat

import needs
import numpy
import pytest
from refusals import refuses

from azr_population.analysis.metrics import all_metrics
from azr_population.reading.tidy import curve, tidy
from azr_population.runs.azr_log import KEYS, flat_lines, from_console, read_azr_log


def azr_series(rows, name):
    """One of our metrics as AZR logged it: [(step, value)]."""
    return list(curve(tidy(flat_lines(rows)), name, ("agent",)).items())


# Lines as veRL's console logger prints them, through Ray, among AZR's own coloured output.
CONSOLE = """\
\x1b[36m(TaskRunner pid=71)\x1b[0m {'actor_rollout_ref': {'model': 
\x1b[36m(TaskRunner pid=71)\x1b[0m {'path': 'Qwen/Qwen2.5-Coder-7B',
(TaskRunner pid=71)                                  'use_shm': False}}}
(TaskRunner pid=71)  'reward_model': {'model': {'path': 'another/model'}},
(TaskRunner pid=71)  'data': {'train_batch_size': 64, 'max_response_length': 8096},
\x1b[1m\x1b[34m[REWARD]\x1b[0m Computing rewards for gen_code_i... step: 3
(TaskRunner pid=71) step:0 - val/test_score/code:0.5
\x1b[36m(TaskRunner pid=71)\x1b[0m step:1 - gen_code_i/format_score:0.5 - \
gen_code_o/format_score:np.float64(0.75) - pred_code_i/accuracy:0.25 - \
pred_code_o/accuracy:0.35 - actor/entropy:1e-1 - actor/grad_norm:nan - \
gen_code_o/gen_code_o/avg_program_lines:6.5 - gen_code_i/gen_code_i/avg_program_lines:7.5 - \
response_length/clip_ratio:0.0 - timing_s/step:12.5 - perf/total_num_tokens:4000
(TaskRunner pid=71) step:2 - gen_code_i/format_score:0.6 - pred_code_f/accuracy:0.5
step:2 - val/test_score/code:0.625
step:3 - gen_code_i/form
"""


def test_the_console_is_read_step_by_step():
    rows = from_console(CONSOLE)
    assert list(rows) == [0, 1, 2], "nothing is known of a step without a value"
    assert rows[1]["gen_code_o/format_score"] == 0.75
    assert rows[1]["actor/entropy"] == 0.1
    assert math.isnan(rows[1]["actor/grad_norm"]), "what diverged is kept as such"
    assert rows[2] == {
        "gen_code_i/format_score": 0.6,
        "pred_code_f/accuracy": 0.5,
        "val/test_score/code": 0.625,
    }


def test_a_validation_at_the_end_is_no_step():
    rows = from_console(
        CONSOLE.replace("step:3 - gen_code_i/form", "step:3 - val/test_score/c:0.5")
    )
    assert list(rows) == [0, 1, 2, 3]
    *_, last = flat_lines(rows)
    assert (last["step"], last["validation"], last["validation/c"]) == (2, 0.5, 0.5)
    assert flat_lines({5: {"val/test_score/code": 0.5}})[0]["step"] == 0


def test_a_type_without_a_valid_program_has_no_lines():
    keys = ("gen_code_i/gen_code_i/avg_program_lines", "gen_code_o/gen_code_o/avg_program_lines")
    assert flat_lines({1: dict(zip(keys, (0.0, 8.0), strict=True))}) == [
        {"step": 1, "agent/lines": 8.0}
    ]


@pytest.mark.parametrize("torn", ["step:3 - gen_co", "step:3 - actor/entropy:0.2", "step:3"])
def test_a_line_that_is_still_being_written_does_not_count(torn):
    assert list(from_console(CONSOLE + torn)) == [0, 1, 2]
    assert from_console("step:1 - a/b:0.25\nstep:2 - a/b:0.2") == {1: {"a/b": 0.25}}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_log_of_windows_is_read(tmp_path, encoding):
    (tmp_path / "log.txt").write_bytes(CONSOLE.replace("\n", "\r\n").encode(encoding))
    assert read_azr_log(tmp_path / "log.txt")[0] == from_console(CONSOLE)


@pytest.mark.parametrize("prefix", ["", "(TaskRunner pid=71) ", "\x1b[36m(Main pid=7)\x1b[0m "])
def test_settings_are_found_in_a_printed_configuration(tmp_path, prefix):
    """As `pprint` prints it: keys sorted, a line each."""
    model = {"enable_gradient_checkpointing": True, "override_config": {}, "path": "org/actor"}
    config = {
        "data": {"train_batch_size": 64, "max_response_length": 8096, "custom": {"path": None}},
        "critic": {"model": model | {"path": "org/critic"}},
        "actor_rollout_ref": {"actor": {"save": ["model", "optimizer"]}, "model": model},
        "azr": {"reward": {"n_samples": 8, "options": {}}},
    }
    path = tmp_path / "azr.log"
    lines = [*pformat(config).splitlines(), "step:1 - actor/entropy:0.5"]
    path.write_text("".join(f"{prefix}{line}\n" for line in lines))
    assert read_azr_log(path)[1] == {
        "base": "org/actor",
        "data.train_batch_size": "64",
        "azr.reward.n_samples": "8",
        "data.max_response_length": "8096",
    }


def test_our_diagnostics_are_means_over_the_task_types(tmp_path):
    path = tmp_path / "azr.log"
    path.write_text(CONSOLE)
    rows, settings = read_azr_log(path)
    assert azr_series(rows, "solve_rate") == [(1, pytest.approx(0.3)), (2, 0.5)]
    assert azr_series(rows, "valid_frac") == [(1, 0.625), (2, 0.6)]
    assert azr_series(rows, "time/step") == [(1, 12.5)]
    assert azr_series(rows, "lines") == [(1, 7.0)]
    assert azr_series(rows, "eval_mean") == []
    assert settings == {
        "base": "Qwen/Qwen2.5-Coder-7B",
        "data.train_batch_size": "64",
        "data.max_response_length": "8096",
    }
    assert {name for name in KEYS if name != "total/generated_tokens"} <= {
        *all_metrics(),
        "total/generated_tokens",
    }


@pytest.mark.parametrize("text", ["", "Traceback: nothing", "[]", '{"a": 1}', "\x00\xff"])
def test_what_is_no_log_is_told_in_one_line(tmp_path, text):
    path = tmp_path / "other.txt"
    path.write_text(text)
    with refuses("other.txt"):
        read_azr_log(path)


def test_lines_of_the_real_logger_are_read():
    """What veRL prints, also of NumPy's scalars; 0.4.1 prints no more than three decimals."""
    logger = needs.verl("verl.utils.logger.aggregate_logger")
    metrics = {
        "pred_code_i/accuracy": numpy.float64(0.25),
        "gen_code_f/format_score": numpy.float32(0.5),
        "actor/lr": 1e-06,
        "training/global_step": 12,
        "note": "left out",
    }
    (values,) = from_console(logger.concat_dict_to_str(metrics, step=12) + "\n").values()
    assert values == pytest.approx(
        {key: float(value) for key, value in metrics.items() if key != "note"}, abs=5e-4
    )


def test_two_runs_in_one_log_are_refused_and_a_resumed_one_is_not():
    """`tee -a` of a second run made one of both."""
    line = "step:{} - pred_code_o/accuracy:0.{}\n".format
    run = "".join(line(step, step) for step in range(6))
    with refuses("holds two runs"):
        from_console(run + line(0, 9))
    with refuses("holds two runs"):
        from_console(run + line(1, 9))
    assert from_console(run + line(4, 9))[4] == {"pred_code_o/accuracy": 0.9}
