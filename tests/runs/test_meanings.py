from azr_population.domains.code.source import NOT_FINITE
from azr_population.domains.code.validity import REFUSALS
from azr_population.method.phases import HELD_OUT, INTERNAL_ERROR
from azr_population.referee import Reason
from azr_population.runs.meanings import MEANINGS, meaning


def test_every_word_that_a_record_can_hold_has_a_meaning():
    words = {str(reason) for reason in Reason} | set(REFUSALS)
    words |= {HELD_OUT, INTERNAL_ERROR, NOT_FINITE}
    words |= {"unparsable", "invalid", "program_too_long", "output_too_long", "too_few_inputs"}
    assert set(MEANINGS) == words


def test_a_completion_that_was_cut_off_says_so():
    assert meaning("unparsable", False).startswith(MEANINGS["unparsable"] + " (")
    assert meaning("unparsable") == meaning("unparsable", None) == MEANINGS["unparsable"]
    assert meaning("<b>", False) == ""
