import torch

from azr_population.runs.streams import Streams


def test_a_stream_depends_on_seed_step_and_purpose_alone():
    def draw(seed, purpose, step):
        streams = Streams(seed)
        streams.torch("something else", 9)
        return (
            torch.rand(1, generator=streams.torch(purpose, step)).item(),
            streams.numpy(purpose, step).random(),
        )

    assert draw(1, "solve", 3) == draw(1, "solve", 3)
    others = [draw(2, "solve", 3), draw(1, "propose", 3), draw(1, "solve", 4)]
    assert draw(1, "solve", 3) not in others and len(set(others)) == 3
