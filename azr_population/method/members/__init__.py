"""What a member is: a role, a rating, a lineage; and the roster of all members of a run."""

from azr_population.method.members.lineage import LineageRecord
from azr_population.method.members.member import Member, Rating, Role
from azr_population.method.members.rating import Outcome, RatingSystem, outcome_of, tally
from azr_population.method.members.roster import Roster

__all__ = [
    "LineageRecord",
    "Member",
    "Outcome",
    "Rating",
    "RatingSystem",
    "Role",
    "Roster",
    "outcome_of",
    "tally",
]
