"""Programming puzzles: a program says whether an answer is right, and an answer has to be found."""
