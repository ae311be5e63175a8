"""Distinguishes calls of the program from those that torch and torchspore make for themselves."""
from __future__ import annotations

from types import CodeType, FrameType

from torchspore.base.frames import is_user_file, with_slashes


def is_programs(code: CodeType, frame: FrameType) -> bool:
    """Return whether a function is the program's; a dataclass's methods have no file, and there are some of ours."""
    name = code.co_filename
    return is_user_file(name) and (name != "<string>" or not str(frame.f_globals.get("__name__")).startswith("torchspore"))


def argument_of_call(frame: FrameType, position: int) -> object:
    """Return the positional argument of the call that a frame has just begun; an empty text if the function has fewer.

    A profile hook receives the frame alone. The position is part of a method's interface; the parameter's name in CPython is not.
    """
    names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    return frame.f_locals[names[position]] if position < len(names) else ""


_BETWEEN = ("/torchspore/graph/control_flow/runtime_helpers.py", "/torchspore/mindspore/ops/declaration/error_boundary.py")
"""Files of torchspore that only forward the program's calls."""


def is_ours(frame: FrameType | None) -> bool:
    """Return whether torch, torchspore or an import does it, not the user's program nor a library that it calls.

    The caller of a logger is responsible for its handlers: torch logs while it traces, and pytest has handlers of its own. An import is
    responsible for the loaders that it calls: pytest opens files to rewrite assertions, in modules of torch too (`test_operators`).
    """
    caller_file: bool | None = None
    is_module_body = False
    callee: FrameType | None = None
    while frame is not None:
        name = with_slashes(frame.f_code.co_filename)
        if "/logging/" in name:
            caller_file = None
        elif "importlib" in name and callee is not None and "importlib" not in callee.f_code.co_filename and not is_module_body:
            caller_file = True                                 # a finder or loader calls, and not the module that it loads
        elif caller_file is None and not name.endswith(_BETWEEN):
            if is_user_file(frame.f_code.co_filename):
                caller_file = False
            elif "importlib" in name or "/torch/" in name or "/torchspore/" in name:
                caller_file = True
        is_module_body |= frame.f_code.co_name in ("<module>", "__getattr__")
        callee, frame = frame, frame.f_back
    return caller_file is not False
