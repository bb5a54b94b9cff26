"""Who meets whom: PFSP weightings of TrueSkill odds, and the draw of a step's matches."""

from azr_population.method.matchmaking.draw import draw_pairs
from azr_population.method.matchmaking.matchmaker import Match, Matchmaker
from azr_population.method.matchmaking.pfsp import WEIGHTINGS, Odds

__all__ = ["WEIGHTINGS", "Match", "Matchmaker", "Odds", "draw_pairs"]
