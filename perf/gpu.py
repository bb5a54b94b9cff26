"""What one GPU of 80 GB does, in a quarter of an hour: python perf/gpu.py --out DIR

    python perf/gpu.py --out DIR [--seconds 800] [--groups run,seven] [--device cpu --shape small]

Needs torch, transformers and this package (without a network: the parts `azr` and `tests` of
perf/azr_on_gpu/stage.sh); no vLLM. Weights are drawn on the spot. Groups come in order of worth;
each has a process and a time limit, so that one that fails or hangs costs itself only. A figure is
a line of DIR/figures.jsonl as soon as it is there; what a group prints is in DIR/GROUP.log.
`--shape small --device cpu` plays all of it in a minute or two.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

GROUPS = {
    "graphs": 45, "steps": 130, "operators": 50, "long": 75,
    "run": 90, "seven": 190, "tests": 40, "nf4": 90,
}  # fmt: skip
"""Seconds that each may take."""
HERE = Path(__file__).resolve()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--shape", help="of all groups, in place of their own")
    parser.add_argument("--seconds", type=float, default=800)
    parser.add_argument("--groups", default=",".join(GROUPS))
    parser.add_argument("--parts", help="of `seven`, in this order: graphs,decoding,...")
    parser.add_argument("--play", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if unknown := [name for name in asked.groups.split(",") if name not in GROUPS]:
        parser.error(f"--groups: {', '.join(unknown)} is unknown; choose from: {', '.join(GROUPS)}")
    asked.out = asked.out.resolve()
    note = Notes(asked.out, asked.play or "all")
    if asked.play:
        globals()[f"play_{asked.play}"](asked, note)
        return
    asked.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + asked.seconds
    for name in asked.groups.split(","):
        limit = min(GROUPS[name] * (1 if asked.device == "cuda" else 20), end - time.monotonic())
        if limit < 5:
            note(name, "left out: no time left")
            continue
        command = [sys.executable, str(HERE), *sys.argv[1:], "--play", name]
        start, ended = time.monotonic(), "in time"
        with (asked.out / f"{name}.log").open("w") as log:
            # In a session of its own: what it has started ends with it.
            group = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
            try:
                code = group.wait(limit)
                ended = f"with exit code {code}" if code else ended
            except subprocess.TimeoutExpired:
                ended = f"stopped after {limit:.0f} s"
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(group.pid, signal.SIGKILL)
                group.wait()
        note(name, {"ended": ended, "seconds": round(time.monotonic() - start, 1)})


class Notes:
    """Writes figures, each at once."""

    def __init__(self, out: Path, group: str) -> None:
        self.path, self.group = out / "figures.jsonl", group
        self.start = time.monotonic()

    def __call__(self, name: str, figure: Any) -> None:
        at = round(time.monotonic() - self.start, 1)
        line = {"group": self.group, "name": name, "at": at, "figure": shortened(figure)}
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)

    def each(self, parts: list[Callable[[], None]]) -> None:
        """Plays the parts; one that fails is noted, and the rest goes on."""
        import traceback

        for part in parts:
            try:
                part()
            except Exception as error:
                # Out of memory, a kernel that is not there: what is to be found out.
                traceback.print_exc()
                self(part.__name__, f"failed: {type(error).__name__}: {str(error)[:300]}")


def shortened(figure: Any) -> Any:
    """Numbers to four digits."""
    if isinstance(figure, dict):
        return {name: shortened(each) for name, each in figure.items()}
    return float(f"{figure:.4g}") if isinstance(figure, float) else figure


def play_graphs(asked: Any, note: Notes) -> None:
    """Steps of the nano base as graphs: memory over calls, and the same tokens as without."""
    from graphs_at_work import nano_graphs

    nano_graphs(asked.device, note)


def play_long(asked: Any, note: Notes) -> None:
    """Long completions at 1.5B's shapes, by graphs and without."""
    from graphs_at_work import long_completions

    long_completions(asked.shape or "1.5b", asked.device, note)


def play_steps(asked: Any, note: Notes) -> None:
    """Seconds a step of 4T+4S on the nano base at its 64 tasks and 8 attempts: 60 steps with one
    batch a phase, graphs, no checkpointing and a referee of all cores; 4 by `torch_cuda` alone."""
    arms = {
        "graphs": (
            60, "engine.step_graphs=true", "engine.generate_batch_size=4096",
            "engine.gradient_checkpointing=false", f"referee.workers={os.cpu_count()}",
        ),
        "eager": (4,),
    }  # fmt: skip
    for name, (steps, *overrides) in arms.items():
        if asked.device == "cpu":
            steps = 2
            overrides += ["population.batch_size=2", "population.samples_per_task=2"]
        run = asked.out / f"steps_{name}"
        settings = [
            f"run.dir={run}",
            f"run.steps={steps}",
            "run.checkpoint_every=1000",
            "eval.every=0",
        ]
        note(name, figure := ran(["train", *settings, *on_device(asked), *overrides]))
        if figure["code"]:
            continue
        lines = (run / "metrics.jsonl").read_text().splitlines()
        records = [json.loads(line) for line in lines]
        for key in [key for key in records[-1] if key.startswith("time/")]:
            values = [record[key] for record in records if key in record]
            # The first steps start what lasts.
            late = values[len(values) // 2 :]
            note(f"{name}, {key}", {"median s": median(late), "steps": len(values)})


def on_device(asked: Any) -> list[str]:
    """Overrides of the engine."""
    return ["engine=torch_cuda"] if asked.device == "cuda" else ["engine.threads=1"]


def ran(words: list[str]) -> dict[str, Any]:
    """Seconds of the command line with these words; its last lines if it fails."""
    command, start = [sys.executable, "-m", "azr_population.cli", *words], time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    print(done.stdout, done.stderr, flush=True)
    figure = {"code": done.returncode, "seconds": time.monotonic() - start}
    if done.returncode:
        figure["last lines"] = (done.stdout + done.stderr).strip().splitlines()[-5:]
    return figure


def play_run(asked: Any, note: Notes) -> None:
    """The nano base: two steps with replacements and checkpoints, and their resumption."""
    run = asked.out / "run_run"
    settings = (
        f"run.dir={run}", "run.steps=2", "run.checkpoint_every=1", "eval.every=0",
        "population.batch_size=16", "evolution.interval=1",
    )  # fmt: skip
    note("train", figure := ran(["train", *settings, *on_device(asked)]))
    if figure["code"]:
        return
    note("resume", ran(["resume", str(run), "run.steps=3"]))
    records = run / "metrics.jsonl"
    for line in records.read_text().splitlines()[1:] if records.exists() else ():
        shown = ("step", "time/", "mismatch")
        note("step", {k: v for k, v in json.loads(line).items() if k.startswith(shown)})


def play_operators(asked: Any, note: Notes) -> None:
    """A child of each operator, ours beside populora's and a copy."""
    from operators import Clock, Populora, measure, random_member

    from azr_population.versions import installed

    for device, layers in ((asked.device, 28), ("cpu", 4)):
        layers = 1 if asked.shape == "small" else layers
        parents = [random_member(seed, layers, 32, device) for seed in (0, 1)]
        peer = Populora(parents) if installed("populora") else None
        for row in measure(parents, Clock(device, "wall"), 2, peer):
            note(f"{device}, {layers} layers", row)


def play_tests(asked: Any, note: Notes) -> None:
    """The tests that compute on a GPU."""
    marked = "gpu" if asked.device == "cuda" else "not gpu"
    command = [sys.executable, "-m", "pytest", "-m", marked, "-p", "no:cacheprovider"]
    done = subprocess.run([*command, str(HERE.parents[1] / "tests" / "devices")])
    note("exit code", done.returncode)


def play_nf4(asked: Any, note: Notes) -> None:
    """A base in NF4 beside the same in full: gigabytes, tokens a second, an update."""
    import torch
    from base_at_work import Base
    from drawn import described, drawn, folder

    from azr_population.engines.base_model import load_base

    config = described(asked.shape or "1.5b")
    dtype = torch.bfloat16 if asked.device == "cuda" else torch.float32
    name = str(dtype).removeprefix("torch.")
    with folder(drawn(config, dtype, asked.device)) as path:
        for quantization in ("nf4", None):
            kind = quantization or name
            base = Base(
                asked, lambda what, figure, kind=kind: note(f"{kind}: {what}", figure), config
            )
            model, _ = load_base(path, name, asked.device, quantization=quantization)
            base.take(model)
            note.each([base.step_of_eight, base.update])
            del model, base


def play_seven(asked: Any, note: Notes) -> None:
    """7B's shapes: one base, drawn once, for all figures."""
    from base_at_work import Base
    from drawn import described, drawn

    config = described(asked.shape or "7b")
    base = Base(asked, note, config)
    parts = {part.__name__: part for part in base.parts()}
    names = asked.parts.split(",") if asked.parts else list(parts)
    if unknown := [name for name in names if name not in parts]:
        raise SystemExit(
            f"--parts: {', '.join(unknown)} is unknown; choose from: {', '.join(parts)}"
        )
    base.ceilings()
    base.take(drawn(config, base.dtype, asked.device))
    note.each([parts[name] for name in names])


if __name__ == "__main__":
    main()
