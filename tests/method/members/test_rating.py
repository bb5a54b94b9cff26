from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from refusals import refuses

from azr_population.method.members import Outcome, Rating, RatingSystem, outcome_of, tally

WIN, LOSS, DRAW, FORFEIT = (
    Outcome.STUDENT_WINS,
    Outcome.TEACHER_WINS,
    Outcome.DRAW,
    Outcome.FORFEIT,
)


@pytest.mark.parametrize(
    ("solve_rate", "outcome"),
    [(None, FORFEIT), (0.0, LOSS), (0.49, LOSS), (0.5, DRAW), (0.51, WIN), (1.0, WIN)],
)
def test_a_game_is_won_by_more_than_half_of_the_attempts(
    solve_rate: float | None, outcome: Outcome
) -> None:
    assert outcome_of(solve_rate) is outcome


def test_a_solve_rate_outside_its_range_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        outcome_of(1.5)


def test_one_game_between_beginners_gives_the_published_numbers() -> None:
    # TrueSkill's own example without draws and with its default tau: 29.396 +- 7.171 for the winner
    # at a draw probability of 0.1 (trueskill.org, `rate_1vs1`).
    teacher, student = RatingSystem().rate_match(Rating(), Rating(), [WIN])
    assert (student.mu, student.sigma) == pytest.approx((29.396, 7.171), abs=1e-3)
    assert (teacher.mu, teacher.sigma) == pytest.approx((20.604, 7.171), abs=1e-3)


def test_a_draw_between_equals_only_narrows_the_belief() -> None:
    teacher, student = RatingSystem().rate_match(Rating(), Rating(), [DRAW])
    assert (student.mu, student.sigma) == pytest.approx((25.0, 6.458), abs=1e-3)
    assert teacher == student


def test_drift_is_added_once_per_match_not_per_game() -> None:
    still = RatingSystem(tau=0.0)
    drifting = RatingSystem(tau=2.0)
    start = Rating(25.0, 1.0)
    widened = Rating(25.0, 5.0**0.5)
    games = [WIN, LOSS, LOSS]
    moved = drifting.rate_match(start, start, games)
    expected = still.rate_match(widened, widened, games)
    for got, wanted in zip(moved, expected, strict=True):
        assert (got.mu, got.sigma) == pytest.approx((wanted.mu, wanted.sigma))


def test_forfeits_count_against_the_teacher_unless_switched_off() -> None:
    start = Rating()
    teacher, student = RatingSystem(tau=0.0).rate_match(start, start, [FORFEIT] * 12)
    assert teacher == RatingSystem(tau=0.0).rate_match(start, start, [FORFEIT] * 12)[0]
    assert teacher.mu < 15 and student == start, "who attempted nothing is not paid"
    once = RatingSystem().rate_match(start, start, [FORFEIT])[0]
    assert once == RatingSystem().rate_match(start, start, [WIN])[0]
    assert RatingSystem(forfeit=False).rate_match(start, start, [FORFEIT]) == (start, start)


def test_a_student_is_rated_by_what_it_attempted_wherever_the_forfeits_stand() -> None:
    rating, start = RatingSystem(), Rating()
    attempted = rating.rate_match(start, start, [WIN, LOSS])[1]
    for games in ([FORFEIT] * 5 + [WIN, LOSS], [WIN, FORFEIT, LOSS, FORFEIT]):
        teacher, student = rating.rate_match(start, start, games)
        assert student == attempted and teacher.mu < student.mu


def test_a_match_without_games_changes_nothing() -> None:
    assert RatingSystem().rate_match(Rating(30, 2), Rating(20, 3), []) == (
        Rating(30, 2),
        Rating(20, 3),
    )


def test_a_series_converges_on_the_strength_it_was_played_with() -> None:
    # Students who win 75% of the games: p must come out near 0.75.
    system = RatingSystem(draw_probability=0.0, tau=0.0)
    teacher = student = Rating()
    for _ in range(20):
        teacher, student = system.rate_match(teacher, student, [WIN, WIN, LOSS, WIN] * 12)
    assert system.win_probability(student, teacher) == pytest.approx(0.75, abs=0.03)


def test_win_probability_is_the_normal_of_the_difference() -> None:
    system = RatingSystem()
    assert system.win_probability(Rating(), Rating()) == 0.5
    # 10 / sqrt(2 (25/6)^2 + 1 + 4) = 1.5834...; Phi of it by tables.
    one, other = Rating(30, 1), Rating(20, 2)
    assert system.win_probability(one, other) == pytest.approx(0.94376, abs=2e-4)
    assert system.win_probability(one, other) + system.win_probability(other, one) == pytest.approx(
        1.0
    )


def test_quality_is_trueskills() -> None:
    assert RatingSystem().quality(Rating(), Rating()) == pytest.approx(0.4472, abs=1e-4)


def test_tally_counts_for_the_match_record() -> None:
    assert tally([WIN, LOSS, LOSS, DRAW, FORFEIT]) == {
        "student_wins": 1,
        "teacher_wins": 2,
        "draws": 1,
        "forfeits": 1,
    }


@pytest.mark.parametrize("chance", [-0.1, 1.0, 7.0])
def test_an_impossible_draw_probability_is_refused(chance: float) -> None:
    with refuses("matchmaking.draw_probability"):
        RatingSystem(draw_probability=chance)


@settings(max_examples=60, deadline=None)
@example(mus=(98.8125, -221.0), sigmas=(3.25, 4.875), games=[Outcome.DRAW])
@example(mus=(99.0, -221.0), sigmas=(3.25, 4.875), games=[Outcome.DRAW])
@given(
    mus=st.tuples(*[st.floats(-400, 450)] * 2),
    sigmas=st.tuples(*[st.floats(0.1, 9.0)] * 2),
    games=st.lists(st.sampled_from(Outcome), max_size=8),
)
def test_rating_never_fails_and_repeats_itself(
    mus: tuple[float, float], sigmas: tuple[float, float], games: list[Outcome]
) -> None:
    system = RatingSystem()
    ratings = [Rating(mu, sigma) for mu, sigma in zip(mus, sigmas, strict=True)]
    after = system.rate_match(ratings[0], ratings[1], games)
    assert after == RatingSystem().rate_match(ratings[0], ratings[1], games)
    assert all(abs(rating.mu) < 1e4 and 0 < rating.sigma < 10 for rating in after)
