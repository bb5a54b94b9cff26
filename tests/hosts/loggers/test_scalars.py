from azr_population.hosts.loggers import step_figures

STEP = {
    "step": 3,
    "seconds": 1.5,
    "phases": {"propose": 0.5},
    "roles": {"teacher": {"role": "teacher", "validity": 0.9, "loss": None}},
    "members": {"teacher_0": {"role": "teacher", "mu": 25.0, "updates": 1.0}},
    "types": {"code_o": {"solve_rate": 0.4}},
    "reasons": {"ok": 40, "error": 2},
    "exam": {"members": {"student_0": 0.3}, "mean": 0.3, "best": 0.4, "types": {"code_i": 0.2}},
}


def test_every_number_of_a_step_has_its_place_in_the_namespace():
    assert step_figures(STEP, births=2) == {
        "population/replaced": 2.0,
        "population/seconds": 1.5,
        "population/teacher/validity": 0.9,
        "population/teacher_0/mu": 25.0,
        "population/teacher_0/updates": 1.0,
        "population/code_o/solve_rate": 0.4,
        "population/exam/student_0": 0.3,
        "population/exam/code_i": 0.2,
        "population/exam/mean": 0.3,
        "population/exam/best": 0.4,
        "population/phases/propose": 0.5,
        "population/reasons/ok": 40.0,
        "population/reasons/error": 2.0,
    }


def test_what_is_no_finite_number_is_left_out():
    step = {"step": 1, "roles": {"agent": {"loss": float("nan"), "ok": True, "x": "text"}}}
    assert step_figures({**step, "exam": None}) == {"population/replaced": 0.0}


def test_the_record_is_not_changed():
    before = repr(STEP)
    step_figures(STEP)
    assert repr(STEP) == before
