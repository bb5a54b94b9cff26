from __future__ import annotations

import subprocess
import sys

import pytest

from azr_population.errors import UserError
from azr_population.measuring.evaluation.grading.verdict import Verdict
from azr_population.measuring.evaluation.sampling.sampler import Drawn
from azr_population.measuring.evaluation.store import Key, Store, settings_digest


def key(sample=0, problem="p/0"):
    return Key("abcd1234", "base", "w", problem, sample)


def test_what_was_added_is_read_again(tmp_path):
    store = Store(tmp_path)
    with store.locked():
        store.add_completions([(key(), Drawn("é\u2028\ud800 text", 3, True))])
        store.add_verdicts([(key(), Verdict(False, "wrong", answer="4"))])
        store.add_verdicts([(key(), Verdict(True, "passed", answer="5"))])
        store.note_settings("abcd1234", {"benchmark": "b"})
        store.note_settings("abcd1234", {"benchmark": "b"})
    again = Store(tmp_path)
    assert again.completions == {key(): Drawn("é\u2028\ud800 text", 3, True)}
    assert again.verdicts[key()].answer == "5"
    assert (tmp_path / "settings.jsonl").read_text().count("\n") == 1


def test_a_torn_line_costs_itself_only(tmp_path):
    store = Store(tmp_path)
    with store.locked():
        store.add_completions([(key(0), Drawn("a", 1, True)), (key(1), Drawn("b", 1, True))])
    path = tmp_path / "completions.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    torn = Store(tmp_path)
    assert list(torn.completions) == [key(0)]
    with torn.locked():
        torn.add_completions([(key(2), Drawn("c", 1, True))])
    assert list(Store(tmp_path).completions) == [key(0), key(2)]


def test_lines_of_another_version_and_garbage_are_skipped(tmp_path):
    (tmp_path / "completions.jsonl").write_text('{"no": "key"}\n[1]\nnull\n{{\n\xff\n')
    assert Store(tmp_path).completions == {}


def test_one_writes_at_a_time(tmp_path):
    refused = pytest.raises(UserError, match="is in use by another evaluation")
    with Store(tmp_path).locked(), refused, Store(tmp_path).locked():
        raise AssertionError


_WRITE_FOR_EVER = """
import sys
from pathlib import Path
from azr_population.measuring.evaluation.sampling.sampler import Drawn
from azr_population.measuring.evaluation.store import Key, Store

store = Store(Path(sys.argv[1]))
with store.locked():
    for number in range(100_000):
        key = Key("abcd1234", "base", "w", "p/0", number)
        store.add_completions([(key, Drawn("x" * 200, 1, True))])
        print(number, flush=True)
"""


def test_kill_9_loses_nothing_that_was_finished(tmp_path):
    command = [sys.executable, "-c", _WRITE_FOR_EVER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        told = [process.stdout.readline() for _ in range(5)]
        process.kill()
    kept = list(Store(tmp_path).completions)
    assert len(kept) >= len(told)
    assert kept == [key(number) for number in range(len(kept))]
    with Store(tmp_path).locked():  # the lock went with the process
        pass


def test_settings_tell_apart_what_differs():
    one = {"prompt": "azr", "temperature": 0.0}
    assert settings_digest(one) == settings_digest(dict(reversed(one.items())))
    assert settings_digest(one) != settings_digest({**one, "temperature": 0.8})
