from __future__ import annotations

from odf_common.data.operation import OperationType


def test_numbers_and_symbols_are_those_of_the_specification() -> None:
    assert [(int(operation), operation.symbol) for operation in OperationType] == [
        (0, "+A"),
        (1, "-R"),
        (2, "-C"),
        (3, "+C"),
    ]


def test_retractions_and_the_first_half_of_corrections_remove() -> None:
    assert [operation for operation in OperationType if operation.removes] == [
        OperationType.RETRACT,
        OperationType.CORRECT_FROM,
    ]
