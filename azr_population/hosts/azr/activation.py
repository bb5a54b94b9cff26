"""The Hydra callback that puts the population into an AZR run. Without it nothing of ours runs.

Hydra calls it in the driver, before AZR's main function, because the `population` group names it.
"""

import sys
import traceback
from functools import partial
from typing import Any, NoReturn

from hydra.core.utils import JobReturn, JobStatus
from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from azr_population.errors import UserError


class ActivatePopulation(Callback):
    """Checks the host and the configuration, then puts our trainer in the place of AZR's."""

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Hydra's hook.

        Hydra turns exceptions of callbacks into warnings and would go on with stock AZR, so every
        failure ends the process here: a mistake of the user with exit code 2 and one line, a fault
        of ours with 1 and its traceback.
        """
        try:
            activate(config)
        except UserError as error:
            stop(str(error))
        except Exception as error:
            traceback.print_exc()
            stop(f"{type(error).__name__}: {error}", code=1)

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Refuses a sweep, whose runs would share one `__main__`."""
        stop("+population does not work with --multirun; start each run by itself")

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **kwargs: Any) -> None:
        """Hydra's hook, in the driver, when AZR's main function has returned or raised.

        What the user can mend, wherever it was raised, ends the process with exit code 2 and its
        line as the last one, in place of tracebacks of Ray, Hydra and AZR. All other errors go on
        to them, because a traceback is what they need.
        """
        failed = job_return.status is JobStatus.FAILED
        if failed and (message := user_message(job_return._return_value)):
            import ray

            # Ray still has output of its processes to print; ours comes after it.
            ray.shutdown()
            stop(message)


def activate(config: DictConfig) -> None:
    """Replaces `__main__.CodeIORayPPOTrainer`, which AZR's TaskRunner takes with it to its process.
    Raises UserError: a population cannot use the host, the configuration or the base."""
    from azr_population.hosts.azr.azr_plan import resolve
    from azr_population.hosts.azr.checks import check_host
    from azr_population.hosts.azr.dry_run import page
    from azr_population.hosts.azr.fitting import prepare
    from azr_population.hosts.azr.settings import as_typed

    main = sys.modules["__main__"]
    check_host(main)
    plan = resolve(config)
    from azr_population.patches.azr_fixes import apply_patches

    apply_patches(plan.settings.referee)  # refused on another AZR
    start = prepare(config, plan)
    if plan.settings.dry_run:
        lines, ready = page(config, start)
        print("\n".join(lines), flush=True)
        raise SystemExit(0 if ready else 2)
    if reasons := [*start.faults, *start.lacking_here]:
        for reason in reasons[1:]:
            print(f"azr-population: refused too: {as_typed(reason)}", file=sys.stderr, flush=True)
        raise UserError(reasons[0])
    for note in start.notes:
        print(f"azr-population: {note}", flush=True)

    from azr_population.hosts.azr.trainer import PopulationTrainer

    main.CodeIORayPPOTrainer = partial(PopulationTrainer, start.plan)  # type: ignore[attr-defined]


def user_message(error: BaseException) -> str | None:
    """The user's message about an error of the driver, in one line; None for a defect."""
    from ray.exceptions import RayActorError, RayTaskError

    from azr_population.engines.workers.placement import cause_of_death
    from azr_population.hosts.azr.launch import RESUMES

    if isinstance(error, RayTaskError):  # of the TaskRunner, which may have waited for an actor
        error = error.cause
    elif isinstance(error, RayActorError):  # the driver itself waits for one only
        return f"AZR's TaskRunner (trainer and executor) died: {cause_of_death(error)}; {RESUMES}"
    return str(error) if isinstance(error, UserError) else None


def stop(message: str, code: int = 2) -> NoReturn:
    """Ends the process with one line, in which keys are as AZR's command takes them."""
    from azr_population.hosts.azr.settings import as_typed

    print(f"azr-population: {' '.join(as_typed(message).split())}", file=sys.stderr, flush=True)
    raise SystemExit(code)
