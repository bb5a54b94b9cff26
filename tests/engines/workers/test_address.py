import socket

import pytest

pytest.importorskip("ray", reason="ray is not installed (extra: verl)")
pytest.importorskip("verl", reason="verl is not installed (extra: verl)")
from refusals import refuses

from azr_population.engines.workers.ray_engine import check_reachable


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_where_nobody_answers_is_told_at_once(scheme):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_reachable(f"{scheme}127.0.0.1:{port}")
    with refuses(f"{scheme}127.0.0.1:{port}"):
        check_reachable(f"{scheme}127.0.0.1:{port}")


def test_a_port_that_cannot_be_is_told():
    with refuses("RAY_ADDRESS"):
        check_reachable("127.0.0.1:99999999")


@pytest.mark.parametrize("address", ["auto", "local", "", "cluster-by-name"])
def test_what_names_no_place_is_left_to_ray(address):
    check_reachable(address)
