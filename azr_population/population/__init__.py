"""One population, whoever hosts it: matches, rewards, advantages, turnover, records.

A host (`selfplay/` on this machine, `azr/` inside AZR) brings completions and verdicts, and takes
training samples and replacements.
"""
