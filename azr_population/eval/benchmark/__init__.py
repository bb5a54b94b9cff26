"""Benchmarks as Inspect tasks: models, prompts, graders, the table.

problem.py     what all problems have: a prompt, an answer, a verdict
functions.py, contests.py, mathematics.py  the kinds of problems
benchmarks.py  each benchmark's file, and a problem from each row
tasks.py       Inspect's tasks, their solver and scorer, the graders' self-test
sandbox.py, sandboxed.py  programs in the referee, and what runs beside them there
provider.py    Inspect's provider `azrpop`: all models on one base in one batch
run.py         `azr-population benchmark`: targets x benchmarks, and the table
table.py       pass@k, intervals, differences; CSV, Markdown, LaTeX
"""
