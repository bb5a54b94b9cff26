"""A job for killed children.

In a module of its own, because a spawned child imports it by name, and `tests` may be somebody
else's package there: veRL installs one.
"""


def spin_on_one(job: int) -> int:
    """Never ends for job 1."""
    while job == 1:
        pass
    return job * 10
