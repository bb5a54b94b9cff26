from __future__ import annotations

from collections import Counter
from statistics import NormalDist

import numpy as np

from azr_population.method.matchmaking import Matchmaker
from azr_population.method.members import Member, RatingSystem, Roster, outcome_of

SKILL = {"teacher": [-1.5, -0.5, 0.5, 1.5], "student": [1.5, 0.5, -0.5, -1.5]}


def rank_correlation(members: list[Member]) -> float:
    """Spearman's, between the true strengths and the conservative ratings."""
    skills = [SKILL[str(member.role)][int(member.name[-1])] for member in members]
    ratings = [member.rating.conservative for member in members]
    ranks = [np.argsort(np.argsort(values)) for values in (skills, ratings)]
    return float(np.corrcoef(*ranks)[0, 1])


def test_a_few_steps_find_out_who_is_strong() -> None:
    # Each task has a difficulty of its own that its four attempts share, as real tasks do.
    found = []
    for seed in range(4):
        generator = np.random.default_rng(seed)
        roster, ratings = Roster.make(4, 4), RatingSystem()
        matchmaker = Matchmaker(ratings)
        for _ in range(5):
            for match in matchmaker.draw(roster.teachers, roster.students, generator):
                edge = SKILL["student"][int(match.student.name[-1])]
                edge -= SKILL["teacher"][int(match.teacher.name[-1])]
                games = []
                for _ in range(48):
                    p = NormalDist().cdf(2 * (edge + generator.normal()))
                    games.append(outcome_of(float((generator.random(4) < p).mean())))
                match.teacher.rating, match.student.rating = ratings.rate_match(
                    match.teacher.rating, match.student.rating, games
                )
        found += [rank_correlation(roster.teachers), rank_correlation(roster.students)]
    assert np.mean(found) > 0.9


def test_balanced_matchmaking_prefers_equals() -> None:
    # Two strong and two weak on each side: the open pairings must come up more than by chance.
    roster, generator = Roster.make(4, 4), np.random.default_rng(2)
    for member in roster:
        mu = 33.0 if member.name[-1] in "01" else 17.0
        member.rating = type(member.rating)(mu, 1.0)
    met = Counter(
        match.teacher.rating.mu == match.student.rating.mu
        for _ in range(200)
        for match in Matchmaker(RatingSystem()).draw(roster.teachers, roster.students, generator)
    )
    # p(1-p) is 0.25 against 0.004; uniform matching would pair equals half of the time.
    assert met[True] / met.total() > 0.95
