"""Ratings by TrueSkill, and the roster of all members."""

import pytest

from azr_population.method.members import (
    Member,
    Outcome,
    Rating,
    RatingSystem,
    Role,
    Roster,
    outcome_of,
)

WIN, LOSS, DRAW, INVALID = (
    Outcome.STUDENT_WINS,
    Outcome.TEACHER_WINS,
    Outcome.DRAW,
    Outcome.INVALID,
)


@pytest.mark.parametrize(
    ("solve_rate", "outcome"),
    [(None, INVALID), (0.0, LOSS), (0.49, LOSS), (0.5, DRAW), (0.51, WIN), (1.0, WIN)],
)
def test_a_game_is_won_by_more_than_half_of_the_attempts(solve_rate, outcome):
    assert outcome_of(solve_rate) is outcome


def test_one_game_between_beginners_gives_the_published_numbers():
    # TrueSkill's own example without draws and with its default tau: 29.396 +- 7.171 for the winner
    # at a draw probability of 0.1 (trueskill.org, `rate_1vs1`).
    teacher, student = RatingSystem().rate_match(Rating(), Rating(), [WIN])
    assert (student.mu, student.sigma) == pytest.approx((29.396, 7.171), abs=1e-3)
    assert (teacher.mu, teacher.sigma) == pytest.approx((20.604, 7.171), abs=1e-3)


def test_the_drift_of_all_games_is_added_before_the_match():
    still = RatingSystem(tau=0.0)
    drifting = RatingSystem(tau=2.0)
    start = Rating(25.0, 1.0)
    widened = Rating(25.0, 13.0**0.5)  # 1 + 3 games * 2 ** 2
    games = [WIN, LOSS, LOSS]
    moved = drifting.rate_match(start, start, games)
    expected = still.rate_match(widened, widened, games)
    for got, target in zip(moved, expected, strict=True):
        assert (got.mu, got.sigma) == pytest.approx((target.mu, target.sigma))


def test_a_rating_follows_a_skill_that_falls_steadily():
    # .05 points a match of 64 games, for 60 matches, against teachers whose rating is certain.
    def lag(tau):
        system, student, skill = RatingSystem(tau), Rating(), 25.0
        for _ in range(60):
            won = round(64 * system.win_probability(Rating(skill, 0.01), Rating(25.0, 0.01)))
            games = [WIN if (i * won) % 64 < won else LOSS for i in range(64)]
            student = system.rate_match(Rating(25.0, 0.5), student, games)[1]
            skill -= 0.05
        return student.mu - skill - 0.05

    assert lag(25 / 300 / 8) > 0.3  # TrueSkill's drift once a match
    assert abs(lag(RatingSystem().tau)) < 0.2


def test_invalid_proposals_count_against_the_teacher():
    start = Rating()
    teacher, student = RatingSystem(tau=0.0).rate_match(start, start, [INVALID] * 12)
    assert teacher == RatingSystem(tau=0.0).rate_match(start, start, [INVALID] * 12)[0]
    assert teacher.mu < 15 and student == start, "who attempted nothing is not paid"
    once = RatingSystem(tau=0.0).rate_match(start, start, [INVALID])[0]
    assert once == RatingSystem(tau=0.0).rate_match(start, start, [WIN])[0]
    teacher, student = RatingSystem(tau=1.0).rate_match(start, start, [INVALID] * 48)
    assert student == start and teacher.mu < 15, "nor less certain of the student"


def test_a_student_is_rated_by_what_it_attempted_wherever_the_invalid_ones_stand():
    rating, start = RatingSystem(tau=0.0), Rating()
    attempted = rating.rate_match(start, start, [WIN, LOSS])[1]
    for games in ([INVALID] * 5 + [WIN, LOSS], [WIN, INVALID, LOSS, INVALID]):
        teacher, student = rating.rate_match(start, start, games)
        assert student == attempted and teacher.mu < student.mu


def test_win_probability_is_the_normal_of_the_difference():
    system = RatingSystem()
    assert system.win_probability(Rating(), Rating()) == 0.5
    # 10 / sqrt(2 (25/6)^2 + 1 + 4) = 1.5834...; Phi of it by tables.
    first, other = Rating(30, 1), Rating(20, 2)
    assert system.win_probability(first, other) == pytest.approx(0.94376, abs=2e-4)
    assert system.win_probability(first, other) + system.win_probability(
        other, first
    ) == pytest.approx(1.0)


def test_slots_run_through_teachers_then_students():
    roster = Roster.make(2, 3)
    assert [member.name for member in roster] == [
        "teacher_0", "teacher_1", "student_0", "student_1", "student_2",
    ]  # fmt: skip
    assert [member.slot for member in roster] == list(range(5))
    assert [member.name for member in roster.teachers] == ["teacher_0", "teacher_1"]
    assert roster["student_1"] is list(roster)[3]
    assert {role.value: len(group) for role, group in roster.sub_populations.items()} == {
        "teacher": 2,
        "student": 3,
    }


def test_the_single_agent_is_on_both_sides():
    roster = Roster.make(0, 0)
    assert len(roster) == 1
    assert roster.teachers == roster.students == [roster["agent_0"]]
    assert list(roster.sub_populations) == [Role.AGENT]


def test_gaps_and_twins_are_refused():
    with pytest.raises(ValueError):
        Roster([Member("a", Role.TEACHER, 1)])
    with pytest.raises(ValueError):
        Roster([Member("a", Role.TEACHER, 0), Member("a", Role.STUDENT, 1)])


def test_recentering_sets_the_students_mean_and_keeps_every_difference():
    roster = Roster.make(2, 2)
    for member, mu in zip(roster, (20.0, 26.0, 23.0, 21.0), strict=True):
        member.rating = Rating(mu, 2.0)
    assert roster.recenter_ratings() == 3.0
    assert [member.rating for member in roster] == [Rating(mu, 2.0) for mu in (23, 29, 26, 24)]
    assert roster.recenter_ratings() == 0.0


@pytest.mark.parametrize(("teacher", "student"), [(325.0, 25.0), (-1e4, 1e4), (1e4, -1e4)])
@pytest.mark.parametrize("outcome", [WIN, LOSS, DRAW, INVALID])
def test_ratings_far_apart_change_as_those_ten_deviations_apart(teacher, student, outcome):
    system = RatingSystem()
    far = system.rate_match(Rating(teacher, 1.0), Rating(student, 1.0), [outcome])
    apart = 10.0 * (2 * (25 / 6) ** 2 + 2 * (25 / 300) ** 2 + 2) ** 0.5
    sign = 1 if teacher > student else -1
    near = system.rate_match(Rating(sign * apart, 1.0), Rating(0.0, 1.0), [outcome])
    assert far[0].mu - teacher == pytest.approx(near[0].mu - sign * apart, abs=1e-9)
    assert far[1].mu - student == pytest.approx(near[1].mu, abs=1e-9)
    assert [rating.sigma for rating in far] == pytest.approx([rating.sigma for rating in near])
    surprising = outcome is (WIN if teacher > student else LOSS)
    assert (abs(far[0].mu - teacher) > 0.1) == (surprising or outcome is DRAW or (
        outcome is INVALID and teacher > student))  # fmt: skip
