"""`mindspore._extends.parse.compile_config`: settings of MindSpore's compiler as variables of a module.

`CHECK_BPROP` and `GRAD_FOR_SCALAR` act as the context's options `check_bprop` and `grad_for_scalar`. The others tune MindSpore's compiler;
they keep their values and have no effect here.
"""
from __future__ import annotations

import sys
import types
from typing import Any

from torchspore.context import effects, public

_OPTIONS = {"CHECK_BPROP": "check_bprop", "GRAD_FOR_SCALAR": "grad_for_scalar"}
_ON = ("1", "True", "true", 1, True)

AMP_ENABLE_ALL_FG = AUTO_PASSES_OPTIMIZE_PATH = BOOST_PARSE = CHECK_BPROP = CHECK_PASS_NODE_SCOPE = COMBINE_LIKE_GRAPHS = ""
COMPILE_DEBUG_MODE = COMPILE_PRINT = COMPILE_PROFILE = COMPILE_PROFILE_FINISH_ACTION = DDE_ONLY_MARK = DEBUG_LEVEL = DUMP_IR_CONFIG = ""
DUMP_IR_DDE_DETAIL = DUMP_IR_META_DSL = DUMP_VALIDATE_BEFORE_RESET_ID = ENABLE_DDE = ENABLE_ELIMINATE_UNUSED_PARAMS = ""
ENABLE_FIX_CODE_LINE = ENABLE_RECOMPUTE_BEFORE_INLINE = FALLBACK_FORCE_ANY = FALLBACK_SUPPORT_LIST_DICT_INPLACE = FOR_HALF_UNROLL = ""
GRAD_FOR_SCALAR = GREED_PARSE = IF_PARALLEL_CALL = NOT_WAIT_BRANCH_EVAL = PIJIT_SUBGRAPH_BREAK_OPTIMIZE = PRE_LIFT = ""
PUT_ALL_CNODE_INTO_ORDER_LIST = RECORD_MEMORY = RECURSIVE_EVAL = SINGLE_EVAL = STRICT_CHECK_PARENT_CONTEXT = TRACE_LABEL_WITH_UNIQUE_ID = ""
TRAVERSE_SUBSTITUTIONS_MODE = ""
GRAD_JIT_FILTER = JIT_ENABLE_AUGASSIGN_INPLACE = JIT_ENABLE_AUGASSIGN_INPLACE_FALLBACK = "1"


class _Settings(types.ModuleType):
    """The module's class: it passes what a program assigns to the context."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OPTIONS:
            public.set_context(**{_OPTIONS[name]: value in _ON})
        elif name.isupper():
            effects.note("compile_config", f"compile_config.{name} = {value!r} has no effect here, because it tunes MindSpore's compiler")
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Settings
