"""A small recipe of two arms, and runs of it that were never played."""

from azr_population.config.load import to_yaml
from azr_population.experiments.plan import RecipePlan
from azr_population.experiments.recipes import Arms, Recipe

ARMS = Arms.model_validate(
    {
        "protocols": {"defaults": {"steps": 4, "seeds": 2, "common": ["eval.samples=2"]}},
        "arms": {
            "one": {"title": "one", "population": "single", "seconds": 1},
            "two": {"title": "two", "population": "1t1s", "seconds": 2},
        },
    }
)
TABLE = [
    {"label": "eval at the end", "metric": "eval/greedy", "reduce": "last"},
    {"label": "lines (change)", "metric": "lines", "reduce": "change"},
]
RECIPE = Recipe.model_validate(
    {
        **{"name": "mine", "title": "Mine", "figure": "ours", "arms": ["one", "two"]},
        "table": TABLE,
        "charts": [{"metric": "eval/greedy", "title": "Eval"}],
        "hypotheses": [{"claim": "More.", "row": "eval at the end", "arm": "two", "than": "one"}],
    }
)


def played(run, steps=4):
    """Writes the run as if it had been played."""
    run.directory.create(to_yaml(run.config), {"base": "abc", "commit": "1234567890"})
    lines = [
        {"step": step, "agent/lines": 3.0, "agent_0/lines": 3.0, "time/step": 1.0}
        for step in range(1, steps + 1)
    ]
    run.directory.append("metrics", lines)


def plan(out, **options):
    return RecipePlan(RECIPE, ARMS, out=out, **options)
