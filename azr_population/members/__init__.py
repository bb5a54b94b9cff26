"""What a member is: a role, a rating, a lineage; and the roster of all members of a run."""

from azr_population.members.lineage import LineageRecord
from azr_population.members.member import Member, Rating, Role, check_name
from azr_population.members.rating import Outcome, RatingSystem, outcome_of, tally
from azr_population.members.roster import Roster

__all__ = [
    "LineageRecord",
    "Member",
    "Outcome",
    "Rating",
    "RatingSystem",
    "Role",
    "Roster",
    "check_name",
    "outcome_of",
    "tally",
]
