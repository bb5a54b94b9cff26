"""A pytest fixture over `check_serving`.

pytest_plugins = ["azr_population.sharing.pytest_serving"]

def test_my_server(assert_served):
    assert_served("http://localhost:8000", "base", {"mine": "runs/mine/members/student_0"})
"""

from collections.abc import Callable

import pytest

from azr_population.sharing.check_serving import check_serving, exit_code


@pytest.fixture
def assert_served() -> Callable[..., None]:
    """Fails with the verdicts unless a server answers with all of these adapters; its arguments are
    those of `check_serving`."""

    def check(*arguments: object, **options: object) -> None:
        verdicts = check_serving(*arguments, **options)  # type: ignore[arg-type]
        assert not exit_code(verdicts), "; ".join(map(str, verdicts))

    return check
