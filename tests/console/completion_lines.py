"""Made-up records of completions.jsonl. No test is in here."""


def line(step, verdict="refused", reason="boolean", **more):
    """A record of completions.jsonl."""
    proposes = verdict in ("refused", "valid")
    return {
        **{"step": step, "phase": "propose" if proposes else "solve"},
        **{"member": "teacher_0" if proposes else "student_0", "generation": 0},
        **{"opponent": "student_0" if proposes else "teacher_0", "type": "code_o"},
        **{"verdict": verdict, "reason": reason, "reward": -0.5, "advantage": None},
        **{"log_prob": -0.25, "tokens": 9, "finished": True, "prompt": "<PO>"},
        "completion": "def f(a):\n    return a > 1<in>3",
        **more,
    }
