"""Where a launch's time goes: seconds by part, added up."""

from executor.launch.parts import Part, PartTimes


def test_seconds_of_a_part_add_up_and_never_go_back() -> None:
    times, others = PartTimes(), PartTimes()
    for seconds in (1.0, 2.0, -5.0):
        times.add(Part.COMMITS, seconds)
    others.add(Part.COMMITS, 0.5)
    others.add(Part.WAITING, 4.0)
    times.include(others)
    assert (times[Part.COMMITS], times[Part.WAITING], times[Part.LEARNING]) == (3.5, 4.0, 0.0)
    assert times.to_dict()["commits"] == 3.5
    assert [*times.to_dict()] == [part.value for part in Part]


def test_what_a_block_takes_counts_though_it_fails() -> None:
    times = PartTimes()
    try:
        with times.timed(Part.READING):
            raise KeyError
    except KeyError:
        pass
    assert times[Part.READING] > 0
