"""Benchmarks as Inspect tasks: who is asked, with which prompts, what is right, the table.

benchmarks.py  where each benchmark's file lies, and a problem of each row
prompts.py     how a problem is asked, by name
tasks.py       Inspect's tasks: the benchmarks, and the domains' held-out tasks
targets.py     the base and the members of runs, PEFT folders, bases
provider.py    Inspect's provider `azrpop`: all models on one base in one batch
scorers.py     Inspect's scorers; a grader proves itself first
grading/       what is right: programs in the referee, mathematics by math-verify
benchmark_run.py  `azr-population benchmark`: targets x benchmarks, and the table
table.py       pass@k, intervals, differences; CSV, Markdown, LaTeX
"""
