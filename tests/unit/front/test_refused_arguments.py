"""What stands in the table of refused arguments is refused, by the argument's name."""
from __future__ import annotations

import pytest
from support.refused_arguments import REFUSED, Refused

ROWS = [(name, row) for name, rows in REFUSED.items() for row in rows]


@pytest.mark.parametrize(("name", "row"), ROWS, ids=[f"{name}({row.argument})" for name, row in ROWS])
def test_it_is_refused_by_name(name: str, row: Refused) -> None:
    argument = row.argument.partition("(")[2].rstrip(")") or row.argument
    with pytest.raises((ValueError, TypeError, NotImplementedError, RuntimeError), match=argument):
        row.call()
