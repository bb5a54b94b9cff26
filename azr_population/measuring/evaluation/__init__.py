"""Benchmarks: who is evaluated, on which problems, how completions are drawn and judged, the table.

    benchmarks/   one file a benchmark: where its data come from, and a row of them as a problem
    prompts.py    how a problem is asked, by name
    contestants/  the base and the members of runs, PEFT folders, models of a server
    sampling/     drawing completions: torch, or an OpenAI-compatible server
    grading/      what counts as right: programs in the referee, mathematics by math-verify
    store.py      completions and verdicts on disk
    figures.py    pass@k, intervals, aggregates; `pairs.py` compares on the same problems
    table.py      the table as Markdown and CSV

Who uses it: docs/evaluation.md.
"""
