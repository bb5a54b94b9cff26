"""The members' own words: completions of a run read in the terminal, and members tried by hand."""
