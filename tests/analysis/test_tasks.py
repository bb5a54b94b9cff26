from azr_population.analysis.task_cards import HARDEST, examples


def task(step, rate, nodes, type="code_o"):
    return {
        "step": step, "type": type, "solve_rate": rate, "ast_nodes": nodes,
        "program": f"program of {nodes}",
    }  # fmt: skip


def test_the_middle_sizes_of_both_ends_stand_side_by_side():
    tasks = [task(1, 0.5, 9), task(2, 0.5, 30), task(2, 0.5, 10), task(10, 0.5, 99)]
    tasks += [task(19, 0.5, 40), task(20, 1.0, 41), task(20, 0.5, 90), task(20, 0.5, 1, "code_i")]
    ((early, late),) = examples(lambda: iter(tasks), 20, "ast_nodes").pairs
    assert (early["ast_nodes"], late["ast_nodes"]) == (10, 41)


def test_the_hardest_solved_has_the_smallest_rate_and_then_the_largest_program():
    tasks = [task(1, 0.5, 90), task(1, 0.25, 10), task(2, 0.25, 20), task(2, 1.0, 99)]
    chosen = examples(lambda: tasks, 2, "ast_nodes")
    assert [one["ast_nodes"] for one in chosen.solved] == [20, 10, 90]
    assert chosen.unsolved == []


def test_the_hardest_unsolved_are_the_largest_and_a_copy_counts_once():
    tasks = [task(1, 0.0, size) for size in [5, 7, 7, *range(10, 1000)] for _ in range(2)]
    chosen = examples(lambda: tasks, 1, "ast_nodes")
    assert [one["ast_nodes"] for one in chosen.unsolved] == [999, 998, 997][:HARDEST]


def test_a_program_counts_by_its_hardest_task_and_is_unsolved_only_if_nobody_ever_solved_it():
    tasks = [task(1, 1.0, 30), task(1, 0.0, 40), task(2, 0.25, 30), task(3, 0.0, 30)]
    tasks += [task(4, 0.75, 30), task(5, 0.0, 20), task(6, 0.5, 40)]
    chosen = examples(lambda: tasks, 6, "ast_nodes")
    assert [(one["step"], one["ast_nodes"]) for one in chosen.solved] == [(2, 30), (6, 40)]
    assert [one["ast_nodes"] for one in chosen.unsolved] == [20]


def test_nothing_and_records_that_lack_something():
    assert examples(list, 0, "") == ([], [], [])
    one = {"step": 1, "solve_rate": 0}
    assert examples(lambda: [one], 1, "ast_nodes").unsolved == [one]
