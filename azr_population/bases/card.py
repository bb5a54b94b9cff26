"""The card of a warmed-up base: what it is, what it was warmed up on, how it was measured."""

from collections.abc import Sequence
from pathlib import Path

from azr_population.bases.warmup import Progress, Settings


def write_card(
    out: Path, source: str, settings: Settings, progress: Progress, seeds: Sequence[str]
) -> None:
    """Writes README.md beside the weights; seed files are named without their folders."""
    share = progress.share(settings)
    state = "finished" if share >= 1.0 else f"stopped at {share:.0%}; the same command goes on"
    losses = [point["loss"] for point in progress.curve]
    fall = f"{losses[0]:.2f} -> {losses[-1]:.2f}" if losses else "not recorded"
    files = ", ".join(Path(name).name for name in seeds) or "none"
    (out / "README.md").write_text(
        f"""# {source}, warmed up for self-play

A base for
`azr-population train base=hf base.path=<this folder> base.prompt_format={settings.format}`.

| what | value |
|---|---|
| weights from | {source} |
| warm-up | {state} |
| prompts | `{settings.format}` |
| programs | a typed grammar of small functions, all executed; seed files: {files} |
| demonstrations | {progress.demonstrations:,} in {progress.tokens:,} tokens; \
{progress.too_long:,} were longer than a row and left out |
| steps | {progress.steps} |
| loss (nats a token) | {fall} |
| time | {progress.seconds / 60:.0f} minutes, of them {progress.cpu_seconds / 60:.0f} \
processor minutes, {settings.threads} threads |
| learning rate, seed | {settings.learning_rate:g}, {settings.seed} |

Supervised: it was shown proposals and answers, every program executed before. It has learned the
form of an answer and small programs; `azr-population base validate <this folder>` measures how
much.
`warmup_programs.txt` has the digests of the programs it was shown, `warmup.json` the loss curve.
""",
        encoding="utf-8",
    )
