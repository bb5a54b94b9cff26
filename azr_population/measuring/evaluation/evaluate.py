"""Draws what is missing, judges what is not judged, and counts. Ready for a kill at any moment."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from azr_population.measuring.evaluation.contestants import Contestant, Contestants
from azr_population.measuring.evaluation.data import Data
from azr_population.measuring.evaluation.figures import Scores, by_azr, pass_at_k
from azr_population.measuring.evaluation.grading.grade import Graders
from azr_population.measuring.evaluation.grading.verdict import NO_ANSWER, Verdict
from azr_population.measuring.evaluation.problem import FunctionProblem, MathProblem, Problem
from azr_population.measuring.evaluation.progress import View
from azr_population.measuring.evaluation.prompts import Wording
from azr_population.measuring.evaluation.sampling.sampler import Drawn, Request, Sampler, Settings
from azr_population.measuring.evaluation.store import Key, Store, settings_digest


@dataclass(frozen=True)
class Plan:
    """What is asked of every entry, and how."""

    data: tuple[Data, ...]
    wordings: Mapping[str, Wording]
    """By the benchmark's name."""
    samples: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    max_new_tokens: int = 0
    """0: each benchmark's own."""
    limit: int = 0
    """Of problems of each benchmark; 0: all."""
    seed: int = 1
    rows: int = 64
    """Completions drawn before they are written down."""
    regrade: bool = False

    def problems(self, data: Data) -> list[Problem]:
        """Those that are asked."""
        return data.problems[: self.limit or None]

    def settings(self, data: Data, sampler: str) -> dict[str, Any]:
        """What a completion depends on, beside the model and the problem."""
        how = self.sampling(data)
        seed = {"seed": self.seed} if self.temperature else {}
        return {
            "benchmark": data.benchmark.name,
            "data": data.digest,
            "prompt": self.wordings[data.benchmark.name].name,
            "max_new_tokens": how.max_new_tokens,
            "temperature": how.temperature,
            "top_p": how.top_p,
            "rollout": sampler,
            **seed,
        }

    def sampling(self, data: Data) -> Settings:
        """How completions of a benchmark are drawn."""
        longest = self.max_new_tokens or data.benchmark.max_new_tokens
        return Settings(longest, self.temperature, self.top_p)


OpenSamplers = Callable[
    [Contestants, Sequence[Contestant]], Iterator[tuple[Sampler, list[Contestant]]]
]
"""Samplers for some contestants of an entry, and whom each of them serves."""


@dataclass
class Result:
    """What an entry achieved."""

    entry: Contestants
    plan: Plan
    store: Store
    right: dict[str, dict[str, list[list[bool]]]] = field(default_factory=dict)
    """Benchmark -> contestant -> verdicts on the samples of each problem."""
    notes: list[str] = field(default_factory=list)

    def scores(self, contestant: str, k: int) -> dict[str, Scores]:
        """pass@k of each problem, by benchmark."""
        return {name: pass_at_k(by[contestant], k) for name, by in self.right.items()}


def evaluate(
    entry: Contestants,
    plan: Plan,
    samplers: OpenSamplers,
    sampler: str,
    graders: Graders,
    view: View,
    earlier: Sequence[Store] = (),
) -> Result:
    """Evaluates one entry; `sampler` is the name by which completions are kept apart.

    What the stores of `earlier` entries have is not asked again: runs share their base.

    Raises UserError for anything that the user can mend. What is done by then is kept.
    """
    store = Store(entry.records)
    with store.locked():
        keys = {data.benchmark.name: _keys(entry, plan, data, sampler) for data in plan.data}
        for data in plan.data:
            settings = plan.settings(data, sampler)
            store.note_settings(settings_digest(settings), settings)
        for wanted in keys.values():
            for other in earlier:
                store.copy(other, wanted)
        _draw(entry, plan, keys, samplers, store, view)
        for data in plan.data:
            _judge(plan, data, keys[data.benchmark.name], graders, store, entry.label, view)
    return _result(entry, plan, keys, store)


Keys = dict[Key, tuple[Contestant, Problem]]


def _keys(entry: Contestants, plan: Plan, data: Data, sampler: str) -> Keys:
    digest = settings_digest(plan.settings(data, sampler))
    return {
        Key(digest, one.name, one.weights, problem.id, sample): (one, problem)
        for problem in plan.problems(data)
        for one in entry.contestants
        for sample in range(plan.samples)
    }


def _draw(
    entry: Contestants,
    plan: Plan,
    keys: Mapping[str, Keys],
    samplers: OpenSamplers,
    store: Store,
    view: View,
) -> None:
    """Draws the completions that are missing, all contestants of a base in one batch."""
    missing = {
        name: {key: who for key, who in wanted.items() if key not in store.completions}
        for name, wanted in keys.items()
    }
    waiting = {one.name for wanted in missing.values() for one, _ in wanted.values()}
    if not waiting:
        return
    for sampler, served in samplers(entry, [o for o in entry.contestants if o.name in waiting]):
        names = {one.name for one in served}
        for data in plan.data:
            wanted = missing[data.benchmark.name]
            todo = {key: who for key, who in wanted.items() if who[0].name in names}
            if not todo:
                continue
            title = f"{entry.label}: {data.benchmark.title}, {len(names)} models"
            with view.bar(title, len(todo)) as advance:
                for chunk in _chunks(todo, plan.rows):
                    wording = plan.wordings[data.benchmark.name]
                    requests = [
                        Request(todo[group[0]][0], wording(todo[group[0]][1]), len(group))
                        for group in chunk
                    ]
                    seed = _seed(plan.seed, chunk[0][0])
                    for place, drawn in sampler.sample(requests, plan.sampling(data), seed):
                        store.add_completions(zip(chunk[place], drawn, strict=True))
                        advance(len(drawn))


def _chunks(keys: Mapping[Key, Any], rows: int) -> Iterator[list[list[Key]]]:
    """Keys in groups that differ in the sample only, so many completions at a time."""
    groups: dict[Key, list[Key]] = defaultdict(list)
    for key in keys:
        groups[replace(key, sample=0)].append(key)
    chunk: list[list[Key]] = []
    for group in groups.values():
        chunk.append(group)
        if sum(map(len, chunk)) >= rows:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _seed(seed: int, first: Key) -> int:
    """Another one for every batch, and the same one for the same batch."""
    text = f"{seed} {first.settings} {first.problem} {first.sample} {first.weights}"
    return int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)


def _judge(
    plan: Plan,
    data: Data,
    keys: Keys,
    graders: Graders,
    store: Store,
    label: str,
    view: View,
) -> None:
    todo = [
        key for key in keys if plan.regrade or not _is_judged(keys[key][1], store.verdicts.get(key))
    ]
    if not todo:
        return
    rule = plan.wordings[data.benchmark.name].rule
    asked = [(keys[key][1], _whole(keys[key][1], store.completions[key])) for key in todo]
    with view.bar(f"{label}: {data.benchmark.title}, judging", len(todo)) as advance:
        for places, verdicts in graders.grade(rule, asked):
            store.add_verdicts(zip([todo[place] for place in places], verdicts, strict=True))
            advance(len(places))


def _is_judged(problem: Problem, verdict: Verdict | None) -> bool:
    """Whether there is a verdict, and it has all that today's have."""
    if isinstance(problem, MathProblem):
        return verdict is not None and verdict.azr_passed is not None
    return verdict is not None


def _whole(problem: Problem, drawn: Drawn) -> str:
    """The completion; with the prompt where that was the beginning of a program."""
    if drawn.continued and isinstance(problem, FunctionProblem):
        return problem.prompt.strip() + "\n" + drawn.text
    return drawn.text


def _result(entry: Contestants, plan: Plan, keys: Mapping[str, Keys], store: Store) -> Result:
    result = Result(entry, plan, store)
    for data in plan.data:
        name = data.benchmark.name
        wanted = keys[name]
        right: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
        by_azr_s: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
        for key, (one, problem) in wanted.items():
            right[one.name][problem.id].append(store.verdicts[key].passed)
            by_azr_s[one.name][problem.id].append(bool(store.verdicts[key].azr_passed))
        result.right[name] = {who: list(by.values()) for who, by in right.items()}
        if data.benchmark.area == "math":
            result.right[by_azr(name)] = {w: list(by.values()) for w, by in by_azr_s.items()}
        result.notes += _notes(data, wanted, store)
    return result


def _notes(data: Data, keys: Keys, store: Store) -> Iterator[str]:
    """What a reader of the figures should know of the completions behind them."""
    title, total = data.benchmark.title, len(keys)
    if not data.release:
        yield f"{title}: the file is not a known release (hash {data.digest[:12]})"
    none = [key for key in keys if store.verdicts[key].reason == NO_ANSWER]
    if none:
        example = " ".join(store.completions[none[0]].text.split())[:100] or "(empty)"
        yield f"{title}: {len(none)} of {total} have no answer in the right form, as: {example}"
    drawn = [store.completions[key] for key in keys]
    cut = sum(not one.finished and not one.note for one in drawn)
    if cut:
        yield f"{title}: {cut} of {total} were cut off at the limit of tokens"
    for note, count in Counter(one.note for one in drawn).items():
        if note:
            yield f"{title}: {count} of {total} were not drawn: {note}"
