"""Names that NumPy 2 removed, what to write instead, and the command that installs a NumPy that has them."""
from __future__ import annotations

import re

from torchspore.translations import translate

COMMAND = 'pip install "numpy==1.26.4"'
"""NumPy 1.26 is the last NumPy 1; it exists for Python 3.9 to 3.12."""

REMOVED = {
    **dict.fromkeys(("Inf", "Infinity", "PINF", "infty"), "np.inf"), "NINF": "-np.inf", "NaN": "np.nan", "NAN": "np.nan",
    "NZERO": "-0.0", "PZERO": "0.0",
    "product": "np.prod", "cumproduct": "np.cumprod", "sometrue": "np.any", "alltrue": "np.all", "round_": "np.round", "in1d": "np.isin",
    "trapz": "np.trapezoid", "msort": "np.sort(x, axis=0)", "asfarray": "np.asarray(x, dtype=float)", "mat": "np.asmatrix",
    "float_": "np.float64", "complex_": "np.complex128", "unicode_": "np.str_", "string_": "np.bytes_", "cfloat": "np.complex128",
    "singlecomplex": "np.complex64", "longfloat": "np.longdouble", "longcomplex": "np.clongdouble", "clongfloat": "np.clongdouble",
    "cast": "np.asarray(x, dtype=dtype)", "find_common_type": "np.result_type", "issctype": "issubclass(x, np.generic)",
    "issubclass_": "issubclass", "issubsctype": "np.issubdtype", "obj2sctype": "np.dtype(x).type", "sctype2char": "np.dtype(x).char",
    "sctypes": "the dtypes themselves", "nbytes": "np.dtype(x).itemsize", "safe_eval": "ast.literal_eval", "source": "inspect.getsource",
    "recfromcsv": "np.genfromtxt", "recfromtxt": "np.genfromtxt", "fastCopyAndTranspose": "x.T.copy()", "disp": "print",
    "set_string_function": "np.set_printoptions", "byte_bounds": "np.lib.array_utils.byte_bounds", "compat": "Python's own functions",
    "deprecate": "warnings.warn", "geterrobj": "np.errstate", "seterrobj": "np.errstate", "who": "locals()",
}
"""Names of NumPy 1.26 that NumPy 2 lacks, and what to write instead."""
OLDER = {name: name for name in ("int", "float", "complex", "object", "str")}
"""Names that NumPy 1.24 removed: NumPy 1.26 lacks them as well, and Python's builtins have the same meaning."""

_MISSING = re.compile(r"(?:module 'numpy' has no attribute '|`np\.)(\w+)")


def problem(name: str) -> str | None:
    """Return a sentence about `np.<name>` if a newer NumPy removed it; None otherwise."""
    if name in OLDER:
        return translate("np.{name} was removed in NumPy 1.24; write {name}.").format(name=name)
    if name in REMOVED:
        text = translate("np.{name} was removed in NumPy 2; write {replacement}, or install NumPy 1.26: {command}")
        return text.format(name=name, replacement=REMOVED[name], command=COMMAND)
    return None


def hint(error: BaseException) -> str | None:
    """Return the hint for a program that ended because NumPy lacks a name; None for another error."""
    if not isinstance(error, (AttributeError, ImportError)):
        return None
    imported = getattr(error, "name", None)
    match = _MISSING.match(str(error)) or re.match(r"cannot import name '(\w+)' from 'numpy'", str(error))
    name = match[1] if match else imported if imported in REMOVED and "numpy" in str(error) else None
    if name in OLDER:
        return translate("write {name} instead of np.{name}").format(name=name)
    if name not in REMOVED:
        return None
    return translate("write {replacement}, or install NumPy 1.26: {command}").format(replacement=REMOVED[name], command=COMMAND)
