"""Arms, plans and verdicts of recipes: what is played to answer a question, and what came out."""
