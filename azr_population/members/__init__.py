"""What a member is: a role, a rating, a lineage; and the roster of all members of a run."""
