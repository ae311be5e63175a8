"""`mindspore.scipy.optimize`: minimization, line search, linear assignment."""
from __future__ import annotations

from torchspore.mindspore.scipy.optimize._assignment import linear_sum_assignment
from torchspore.mindspore.scipy.optimize._minimize import OptimizeResults, minimize
from torchspore.mindspore.scipy.optimize._steps import LineSearchResults, line_search
from torchspore.public_names import missing

__getattr__ = missing(__name__)
__all__ = ["LineSearchResults", "OptimizeResults", "line_search", "linear_sum_assignment", "minimize"]
