"""Benchmarks as Inspect tasks: models, prompts, graders, the table.

benchmarks.py  each benchmark's file, and a problem from each row
prompts.py     prompts and parsers of answers, by name
tasks.py       Inspect's tasks: the benchmarks, and the domains' held-out tasks
targets.py     the base and the members of runs, PEFT folders, bases
provider.py    Inspect's provider `azrpop`: all models on one base in one batch
scorers.py     Inspect's scorers, and the graders' self-test
grading/       verdicts: programs by the referee, mathematics by math-verify
benchmark_run.py  `azr-population benchmark`: targets x benchmarks, and the table
table.py       pass@k, intervals, differences; CSV, Markdown, LaTeX
"""
