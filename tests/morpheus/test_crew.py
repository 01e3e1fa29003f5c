"""The threads behind PersistentVectorEnv: overlap, order, foreign exceptions, interrupted batches."""

from __future__ import annotations

import threading

import pytest

from skyfall_morpheus.crew import Crew


def test_results_and_failures_come_back_by_index_in_order() -> None:
    crew = Crew(3)

    def call(index: int) -> int:
        if index % 2:
            raise ValueError(f"odd {index}")
        return index * 10

    results, failures = crew.run(call, [4, 1, 0, 3])
    assert list(results.items()) == [(4, 40), (0, 0)]
    assert {index: str(error) for index, error in failures.items()} == {1: "odd 1", 3: "odd 3"}
    assert crew.run(call, []) == ({}, {})
    crew.dismiss()
    assert crew.run(call, [2]) == ({2: 20}, {})
    crew.dismiss()


def test_as_many_calls_run_at_once_as_there_are_threads_and_no_more() -> None:
    crew = Crew(3)
    guard, inside, most = threading.Lock(), [0], [0]
    barrier = threading.Barrier(3, timeout=20)

    def call(index: int) -> None:
        with guard:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        barrier.wait()
        with guard:
            inside[0] -= 1

    crew.run(call, range(6))
    assert most[0] == 3
    crew.dismiss()


def test_what_is_no_exception_belongs_to_the_caller() -> None:
    crew = Crew(2)
    finished = []

    def call(index: int) -> None:
        if index == 0:
            raise SystemExit(3)
        finished.append(index)

    with pytest.raises(SystemExit):
        crew.run(call, [0, 1])
    assert finished == [1]
    crew.dismiss()


def test_a_batch_left_in_flight_ends_before_the_next_one_begins() -> None:
    crew = Crew(2)
    release, order = threading.Event(), []

    def slow(index: int) -> None:
        release.wait(20)
        order.append(("slow", index))

    batch_type = type(crew._latest)
    original = batch_type.wait
    waits = []

    def wait_once(self: object) -> None:
        waits.append(self)
        if len(waits) == 2:  # the wait for this very batch
            raise KeyboardInterrupt
        original(self)  # type: ignore[arg-type]

    batch_type.wait = wait_once  # type: ignore[method-assign]
    try:
        with pytest.raises(KeyboardInterrupt):
            crew.run(slow, [0, 1])
    finally:
        batch_type.wait = original  # type: ignore[method-assign]
    threading.Timer(0.05, release.set).start()
    crew.run(lambda index: order.append(("next", index)), [0])
    assert order[-1] == ("next", 0)
    assert sorted(order[:-1]) == [("slow", 0), ("slow", 1)]
    crew.dismiss()
