"""Patches replace what they were written for, refuse anything else, and can be undone."""

import os
import sys
import textwrap
from dataclasses import replace

import needs
import pytest
from refusals import refuses

from azr_population.patches import EVALS, Patch, apply, undo
from azr_population.patches.mechanism import digest

SOURCE = """
class Judge:
    def same(self, gold, answer):
        return eval(gold) == eval(answer)

    @staticmethod
    def fixed():
        return 1


def kind(answer):
    return type(eval(answer)).__name__
"""


@pytest.fixture
def upstream(tmp_path, monkeypatch):
    (tmp_path / "upstream_under_test.py").write_text(textwrap.dedent(SOURCE))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "upstream_under_test", raising=False)
    import upstream_under_test

    return upstream_under_test


def patch(name, path, make, **more):
    symbol = f"upstream_under_test:{path}"
    expected = digest("upstream_under_test", more.get("source_of", (path,)))
    return Patch(name, symbol, expected, make, upstream="upstream 1.0", **more)


def test_apply_and_undo(upstream):
    never = patch("never", "Judge.same", lambda old: lambda self, gold, answer: False)
    two = patch("two", "Judge.fixed", lambda old: lambda: 2)
    shadow = patch("shadow", "eval", lambda old: lambda text: text, source_of=("kind",))
    assert apply([never, two, shadow]) == ["never", "two", "shadow"]
    assert not upstream.Judge().same("1", "1")
    assert (upstream.Judge.fixed(), upstream.Judge().fixed()) == (2, 2)
    assert upstream.kind("[]") == "str"
    assert apply([never, two, shadow]) == []
    assert undo([never, two, shadow]) == ["shadow", "two", "never"]
    assert upstream.Judge().same("1", "1") and upstream.kind("[]") == "list"
    assert upstream.Judge.fixed() == 1 and not hasattr(upstream, "eval")
    assert undo([never]) == []


def test_another_source_is_refused_and_nothing_is_applied(upstream):
    good = patch("good", "Judge.same", lambda old: None)
    other = replace(patch("other", "kind", lambda old: None), digest="0" * 16)
    with refuses(":kind"):
        apply([good, other])
    assert upstream.Judge().same("1", "1")
    assert undo([good]) == []


def test_what_is_not_there_is_named(upstream):
    there = patch("there", "kind", lambda old: None)
    for symbol in ("upstream_under_test:Judge.gone", "no_such_upstream:kind"):
        with refuses("1.0"):
            apply([replace(there, symbol=symbol)])


@pytest.mark.azr
def test_azr_s_executor_evaluates_no_answer_any_more(monkeypatch):
    executor = needs.from_azr(needs.AZR_EXECUTOR).PythonExecutor(timeout_length=5, max_workers=1)
    mark = "AZR_POPULATION_WAS_HERE"
    monkeypatch.delenv(mark, raising=False)
    sets = f"[__import__('os').environ.__setitem__('{mark}', '1'), 4][1]"
    equal = "type('X', (), {'__eq__': lambda s, o: True})()"
    multiplies = "type('X', (), {'__mul__': lambda s, o: 14})()"
    twice = "def f(x): return x * 2"
    assert executor.eval_output_prediction(twice, "4", sets) == 1.0  # the defects are there
    assert os.environ.pop(mark) == "1"
    assert executor.eval_output_prediction(twice, "'a'", equal) == 1.0
    assert executor.eval_input_prediction(twice, "14", multiplies) == 1.0
    entries = [entry for entry in EVALS if "python_executor" in entry.symbol]
    assert len(apply(entries)) == 5
    try:
        assert executor.eval_output_prediction(twice, "4", sets) == 0.0
        assert mark not in os.environ
        assert executor.eval_output_prediction(twice, "'a'", equal) == 0.0
        assert executor.eval_output_prediction(twice, "[1, 2]", "[1,2]") == 1.0
        assert executor.eval_input_prediction(twice, "14", multiplies) == 0.0
        assert executor.eval_input_prediction(twice, "14", "7") == 1.0
        assert executor.eval_input_prediction(twice, "14", "8") == 0.0
        assert executor.eval_k_input_prediction(twice, "14", [multiplies, "7", "8"]) == [0, 1, 0]
        assert executor.eval_k_output_prediction(twice, "4", [sets, "4", equal]) == [0, 1, 0]
        assert executor.check_all(twice, "7") == (True, "14")
        # A result whose text is code: read, found to be no literal, and not executed.
        lies = (
            'class R:\n    def __eq__(s, o): return \'open("/tmp/an-answer-was-here", "w")\'\n'
            "def f(x): return R()"
        )
        assert not executor.eval_input_prediction(lies, "14", "1")
        assert not os.path.exists("/tmp/an-answer-was-here")
    finally:
        undo(entries)
        executor.cleanup()


@pytest.mark.azr
@pytest.mark.parametrize("module", ["code_reward", "custom_evaluate"])
def test_azr_s_reward_code_evaluates_no_answer_any_more(module, monkeypatch):
    upstream = needs.from_azr(f"absolute_zero_reasoner.rewards.{module}")
    mark = "AZR_POPULATION_WAS_HERE"
    monkeypatch.delenv(mark, raising=False)
    sets = f"[__import__('os').environ.__setitem__('{mark}', '1'), 4][1]"
    entries = [entry for entry in EVALS if module in entry.symbol]
    assert len(apply(entries)) == 1
    try:
        if module == "code_reward":
            counts = {"list": {"[1]": 2}, "str": {"'a'": 1}}
            rewarded = upstream.get_type_counts_reward("[1]", counts, hierarchical=True)
            assert rewarded < upstream.get_type_counts_reward("[2]", counts, hierarchical=True)
            upstream.get_type_counts_reward(sets, counts, hierarchical=True)
        else:
            reward = upstream.get_gt_reward
            for answer, score in (("[1,2]", 1.0), ("[1]", 0.0), (sets, 0.0)):
                text = f"<answer>{answer}</answer>"
                assert reward(text, "[1, 2]", "answer", "code_eval") == score
        assert mark not in os.environ
    finally:
        undo(entries)
