from azr_population.hosts.loggers import step_figures


def test_loggers_get_the_numbers_of_a_line_under_their_names():
    line = {"step": 3, "time/step": 1.5, "teacher_0/updates": 1, "past/student": "student_1@25"}
    assert step_figures(line) == {"time/step": 1.5, "teacher_0/updates": 1.0}


def test_what_is_no_number_is_left_out():
    line = {"step": 1, "agent/loss": float("nan"), "agent/ok": True, "agent/x": None}
    assert step_figures(line) == {}
