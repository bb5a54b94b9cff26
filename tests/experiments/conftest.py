import pytest
from recipe_plans import plan


@pytest.fixture
def planned(tmp_path):
    return plan(tmp_path).runs
