"""Table 2: what a step and a member's update cost, by arm and phase.

Arms are played seed by seed, so that each seed's arms share the machine's noise: ratios are taken
within a seed, and intervals over seeds. A seed's figure is the median of its steps but the first,
which warms caches up, without evolution, plus the mean of that, because it comes at an interval.
"""

from dataclasses import dataclass
from statistics import mean, median

from azr_population.experiments.results_tables import Runs, number, with_interval
from azr_population.runs import RunDirectory
from azr_population.runs.diagnostics import Estimate, interval
from azr_population.runs.formatting import csv_text, markdown_table, plain_number
from azr_population.runs.records import Record, section, steps_of
from azr_population.runs.records import number as finite

PAPER_RATIO = 1.31
"""4T+4S against the single agent: 8 times the members (PopuLoRA, Table 2)."""


@dataclass(frozen=True)
class Timing:
    """One run: medians over its steps (of evolution the mean, in `step` too), in seconds."""

    step: float
    phases: dict[str, float]
    members: int
    rows: float
    """Rows that a member trained on in a step, the mean over members and steps."""
    tokens: float
    """Tokens that a member generated in a step."""


def timing(run: RunDirectory, steps: int) -> Timing | None:
    """The run's medians; None where it has no step after the first."""
    records = [one for one in steps_of(run) if 1 < one["step"] <= steps and _is_timed(one)]
    if not records:
        return None
    names = dict.fromkeys(name for one in records for name in one["phases"] if name != "exam")
    phases = {name: median(one["phases"].get(name, 0.0) for one in records) for name in names}
    evolve = mean(one["phases"].get("evolve", 0.0) for one in records)
    if "evolve" in phases:
        # It comes at an interval: a median would never show it.
        phases["evolve"] = evolve
    alone = [
        one["seconds"] - sum(one["phases"].get(name, 0.0) for name in ("exam", "evolve"))
        for one in records
    ]
    own = [member for one in records for member in one["members"].values()]
    return Timing(
        median(alone) + evolve,
        phases,
        len(records[0]["members"]),
        sum(member.get("trained_rows") or 0 for member in own) / len(own),
        sum(member.get("tokens") or 0 for member in own) / len(own),
    )


def _is_timed(step: Record) -> bool:
    """Whether a record has its times and members; one from a damaged file may lack anything."""
    phases = step.get("phases")
    times = [step.get("seconds"), *(phases.values() if isinstance(phases, dict) else [None])]
    return all(finite(time) is not None for time in times) and bool(section(step, "members"))


def timings(runs: Runs, steps: int) -> dict[str, dict[str, Timing]]:
    """arm -> seed (the name of the run's folder) -> its timing."""
    found: dict[str, dict[str, Timing]] = {}
    for arm, own in runs.items():
        for run in own:
            if (one := timing(run, steps)) is not None:
                found.setdefault(arm, {})[run.path.name] = one
    return found


def ratios(
    found: dict[str, dict[str, Timing]], arm: str, baseline: str
) -> tuple[list[float], list[float]]:
    """(the arm's step over the baseline's, the same over as many baselines one after another).

    One value per seed that both have. The second is the naive peer: the same number of members
    trained by running the single agent once for each of them.
    """
    shared = [seed for seed in found[arm] if seed in found.get(baseline, {})]
    plain = [found[arm][seed].step / found[baseline][seed].step for seed in shared]
    members = [found[arm][seed].members / found[baseline][seed].members for seed in shared]
    return plain, [ratio / count for ratio, count in zip(plain, members, strict=True)]


def wallclock_tables(runs: Runs, steps: int, baseline: str) -> tuple[str, dict[str, str]]:
    """(Markdown, CSV texts by file name)."""
    found = timings(runs, steps)
    if not found:
        return "No run has a second step yet.", {}
    header = ["arm", "seeds", "members", "rows/member", "tokens/member", "seconds/step"]
    header += ["seconds/member update", f"step / {baseline}", f"step / members x {baseline}"]
    table, csv_rows = [], []
    for arm, own in found.items():
        one = next(iter(own.values()))
        seconds = interval([t.step for t in own.values()])
        each = interval([t.step / t.members for t in own.values()])
        plain, naive = ratios(found, arm, baseline)
        columns = [seconds, each, interval(plain), interval(naive)]
        rows = sum(t.rows for t in own.values()) / len(own)
        tokens = sum(t.tokens for t in own.values()) / len(own)
        table.append(
            [arm, str(len(own)), str(one.members), f"{rows:.1f}", f"{tokens:.0f}"]
            + [with_interval(column) for column in columns]
        )
        csv_rows.append(
            [arm, str(one.members), str(len(own)), f"{rows:.2f}", f"{tokens:.0f}"]
            + [plain_number(value) for e in columns for value in (e.mean, e.low, e.high)]
        )
    names = ("seconds_per_step", "seconds_per_member", "ratio", "ratio_to_one_by_one")
    csv_header = ["arm", "members", "seeds", "rows_per_member", "tokens_per_member"]
    csv_header += [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
    phases_text, phases_csv = _phases(found)
    text = "\n\n".join(
        [
            markdown_table(header, table),
            f"The paper: 4T+4S costs {PAPER_RATIO}x the single agent's step for 8x the members, on "
            "GPUs. The last column is below 1 where training the members together is cheaper than "
            f"running `{baseline}` once for each of them, one after another.",
            "Seconds of each phase (median of steps, mean over seeds) and its share of the step:",
            phases_text,
        ]
    )
    return text, {
        "wallclock.csv": csv_text(csv_header, csv_rows),
        "phases.csv": phases_csv,
    }


def ratio_estimates(runs: Runs, steps: int, baseline: str) -> dict[str, Estimate]:
    """The bars of the figure: step time over the baseline's, by arm."""
    found = timings(runs, steps)
    return {arm: interval(ratios(found, arm, baseline)[0]) for arm in found}


def _phases(found: dict[str, dict[str, Timing]]) -> tuple[str, str]:
    names = list(dict.fromkeys(n for own in found.values() for t in own.values() for n in t.phases))
    table, rows = [], []
    for arm, own in found.items():
        means = {n: sum(t.phases.get(n, 0.0) for t in own.values()) / len(own) for n in names}
        whole = sum(t.step for t in own.values()) / len(own)
        table.append([arm, *(f"{number(v)} ({v / whole:.0%})" for v in means.values())])
        rows.append([arm, *(f"{value:.6g}" for value in means.values())])
    return markdown_table(["arm", *names], table), csv_text(["arm", *names], rows)
