from azr_population.analysis.family_tree import drawing_order, individuals, prune
from azr_population.runs.records import Birth

NAMES = [f"student_{i}" for i in range(3)]


def birth(step, child, *parents):
    return Birth(step, child, parents, "dare", "", 1, 4.5)


def people(*born):
    return individuals(born, NAMES)


def test_a_child_takes_the_slot_and_the_founder_of_its_first_parent():
    victim, parent, other, child = people(birth(5, "student_0", "student_1", "student_2"))
    assert (victim.died, victim.fitness, victim.children) == (5, 4.5, 0)
    assert (child.name, child.born, child.died) == ("student_0", 5, None)
    assert child.parents == (parent.id, other.id)
    assert (child.founder, parent.children, other.children) == (1, 1, 1)


def test_parents_are_who_lived_before_the_step():
    born = people(birth(5, "student_0", "student_1"), birth(5, "student_1", "student_0"))
    # The second child's parent is the founder of slot 0, not the child just born there.
    assert born[4].parents == (0,) and born[3].parents == (1,)


def test_children_stand_beside_their_parent_the_latest_nearest():
    born = people(*(birth(step, "student_0", "student_1") for step in (5, 10, 15, 20)))
    # Founder 1 has children 3 to 6: 3 and 5 above it, 6 and 4 below it.
    assert drawing_order(born) == [0, 3, 5, 1, 6, 4, 2]


def test_of_too_many_the_oldest_without_children_are_left_out():
    born = people(*(birth(step, "student_0", "student_1") for step in range(1, 101)))
    assert {person.born for person in prune(born, 20)} == {0, *range(84, 101)}


def test_a_line_deeper_than_the_stack():
    born = people(*(birth(s, f"student_{s % 2}", f"student_{(s + 1) % 2}") for s in range(1, 5000)))
    assert sorted(drawing_order(born)) == list(range(5002))


def test_unknown_parents_make_a_founder_and_unknown_slots_nothing():
    born = people(birth(5, "student_0", "student_9"), birth(6, "student_8", "student_1"))
    assert [person.parents for person in born] == [()] * 4 and born[3].founder == 3
