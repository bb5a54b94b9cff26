import asyncio

import pytest

from azr_population.eval.benchmark.batcher import Batcher


def test_a_request_without_a_key_fails_alone():
    batcher = Batcher(lambda requests: requests, 4, key=lambda request: request["k"], wait=0.01)

    async def ask():
        with pytest.raises(KeyError):
            await batcher.ask({})
        return await asyncio.wait_for(batcher.ask({"k": 1}), 60)

    assert asyncio.run(ask()) == {"k": 1}
