"""Programs that read Python's state by every road, and change it between calls; and programs that leave marks on it.

A program is text: a file of its own that defines `call()` (one call, in the mode of now), `change(i)` and `seen()` (what a user sees of
the state besides results). The same file, loaded twice, runs as PyNative and as graphs.
"""
# ruff: noqa: E501  a program is easier to read on one line
from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

HEAD = '''
import array, collections, contextvars, ctypes, dataclasses, enum, functools, hashlib, io, itertools, math, operator, os, pathlib, queue, random, sys
import tempfile, threading, types, weakref
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn, ops
'''


@dataclass(frozen=True)
class Road:
    """A way to state: `setup` makes it, `read` is an expression of a number, `change` a statement with `i` in it."""

    name: str
    setup: str
    read: str
    change: str = "pass"


ROADS = [
    Road("global", "K = 2.0", "K", "globals()['K'] = i + 3.0"),
    Road("global_type", "K = 2", "K / 2 if isinstance(K, int) else 10.0", "globals()['K'] = 2.0 if i == 2 else 2"),
    Road("global_zero", "K = 0.0", "(1.0 if np.copysign(1, K) > 0 else 3.0)", "globals()['K'] = -0.0"),
    Road("module", "CFG = types.ModuleType('cfg')\nCFG.K = 2.0", "CFG.K", "CFG.K = i + 3.0"),
    Road("module_in_module", "A = types.ModuleType('a')\nA.b = types.ModuleType('b')\nA.b.K = 2.0", "A.b.K", "A.b.K = i + 3.0"),
    Road("module_getattr", "A = types.ModuleType('a')\nA.K = 2.0", "getattr(A, 'K')", "A.K = i + 3.0"),
    Road("module_vars", "A = types.ModuleType('a')\nA.K = 2.0", "vars(A)['K']", "A.K = i + 3.0"),
    Road("module_list", "A = types.ModuleType('a')\nA.K = [2.0]", "A.K[0]", "A.K[0] = i + 3.0"),
    Road("own_module", "K = 2.0", "sys.modules[__name__].K", "globals()['K'] = i + 3.0"),
    Road("module_by_its_name", "import importlib\nK = 2.0\nNAME = __name__", "importlib.import_module(NAME).K", "globals()['K'] = i + 3.0"),
    Road("globals_call", "K = 2.0", "globals()['K']", "globals()['K'] = i + 3.0"),
    Road("class_attribute", "class C:\n    K = 2.0", "C.K", "C.K = i + 3.0"),
    Road("class_inherited", "class B:\n    K = 2.0\nclass C(B):\n    pass", "C.K", "B.K = i + 3.0"),
    Road("class_shadowed", "class B:\n    K = 2.0\nclass C(B):\n    pass", "C.K", "C.K = i + 3.0"),
    Road("class_list", "class C:\n    K = [2.0]", "C.K[-1]", "C.K.append(i + 3.0)"),
    Road("class_in_dict", "class C:\n    K = 2.0\nD = {'c': C}", "D['c'].K", "C.K = i + 3.0"),
    Road("class_of_object", "class C:\n    K = 2.0\nO = C()", "type(O).K", "C.K = i + 3.0"),
    Road("class_through_object", "class C:\n    K = 2.0\nO = C()", "O.K", "C.K = i + 3.0"),
    Road("object_shadows_class", "class C:\n    K = 2.0\nO = C()", "O.K", "O.K = i + 3.0"),
    Road("class_method", "class C:\n    K = 2.0\n    @classmethod\n    def k(cls):\n        return cls.K", "C.k()", "C.K = i + 3.0"),
    Road("static_method", "class C:\n    @staticmethod\n    def k():\n        return 2.0", "C.k()", "C.k = staticmethod(lambda: i + 3.0)"),
    Road("replaced_method", "class C:\n    def k(self):\n        return 2.0\nO = C()", "O.k()", "C.k = lambda self: i + 3.0"),
    Road("own_method", "class C:\n    def k(self):\n        return 2.0\nO = C()", "O.k()", "O.k = lambda: i + 3.0"),
    Road("operator", "class C:\n    def __float__(self):\n        return 2.0\nO = C()", "float(O)", "C.__float__ = lambda self: i + 3.0"),
    Road("metaclass", "class M(type):\n    @property\n    def K(cls):\n        return cls.k\nclass C(metaclass=M):\n    k = 2.0", "C.K", "C.k = i + 3.0"),
    Road("object", "class C: pass\nO = C()\nO.k = 2.0", "O.k", "O.k = i + 3.0"),
    Road("object_new_attribute", "class C: pass\nO = C()", "getattr(O, 'k', 2.0)", "O.k = i + 3.0"),
    Road("object_in_object", "class C: pass\nO = C()\nO.o = C()\nO.o.o = C()\nO.o.o.k = [2.0]", "O.o.o.k[0]", "O.o.o.k[0] = i + 3.0"),
    Road("slots", "class C:\n    __slots__ = ('k',)\nO = C()\nO.k = 2.0", "O.k", "O.k = i + 3.0"),
    Road("slots_inherited", "class B:\n    __slots__ = ('k',)\nclass C(B):\n    __slots__ = ('__l',)\nO = C()\nO.k = [2.0]", "O.k[0]", "O.k[0] = i + 3.0"),
    Road("property", "class C:\n    def __init__(self):\n        self._k = {'k': 2.0}\n    @property\n    def k(self):\n        return self._k['k']\nO = C()",
         "O.k", "O._k['k'] = i + 3.0"),
    Road("cached_property", "class C:\n    base = 2.0\n    @functools.cached_property\n    def k(self):\n        return self.base\nO = C()", "O.k",
         "C.base = i + 3.0"),
    Road("descriptor", "class D:\n    def __init__(self):\n        self.held = {}\n    def __get__(self, o, t=None):\n        return self.held.get(id(o), 2.0)\n"
         "class C:\n    k = D()\nO = C()", "O.k", "C.__dict__['k'].held[id(O)] = i + 3.0"),
    Road("getattr_hook", "class C:\n    def __init__(self):\n        self.held = {'k': 2.0}\n    def __getattr__(self, n):\n        return self.held[n]\nO = C()",
         "O.k", "O.held['k'] = i + 3.0"),
    Road("dataclass", "@dataclasses.dataclass\nclass C:\n    k: float = 2.0\n    l: list = dataclasses.field(default_factory=list)\nO = C()",
         "O.k + len(O.l)", "O.k = i + 3.0; O.l.append(1)"),
    Road("dataclass_slots", "@dataclasses.dataclass(slots=True)\nclass C:\n    k: float = 2.0\nO = C()", "O.k", "O.k = i + 3.0"),
    Road("namedtuple", "N = collections.namedtuple('N', 'a b')\nO = N([2.0], 1.0)", "O.a[0] * O.b", "O.a[0] = i + 3.0"),
    Road("enum", "class E(enum.Enum):\n    A = [2.0]", "E.A.value[0]", "E.A.value[0] = i + 3.0"),
    Road("namespace", "O = types.SimpleNamespace(k=2.0)", "O.k", "O.k = i + 3.0"),
    Road("list", "L = [1.0, 2.0]", "L[-1]", "L.append(i + 3.0)"),
    Road("list_long", "L = [1.0] * 6000", "L[5000]", "L[5000] = i + 3.0"),
    Road("list_deep", "L = [[[[[[[2.0]]]]]]]", "L[0][0][0][0][0][0][0]", "L[0][0][0][0][0][0][0] = i + 3.0"),
    Road("list_of_objects", "class C: pass\nL = [C() for _ in range(5000)]\nfor o in L: o.k = 2.0", "L[4321].k", "L[4321].k = i + 3.0"),
    Road("list_in_itself", "L = [2.0]\nL.append(L)", "L[1][1][0]", "L[0] = i + 3.0"),
    Road("dict", "D = {'k': 2.0}", "D['k']", "D['k'] = i + 3.0"),
    Road("dict_order", "D = {'a': 1.0, 'b': 2.0}", "next(iter(D.values()))", "D['a'] = D.pop('a')"),
    Road("dict_large", "D = {j: 1.0 for j in range(9000)}", "D[8000]", "D[8000] = i + 3.0"),
    Road("ordered_dict", "D = collections.OrderedDict(a=1.0, b=2.0)", "list(D.values())[-1]", "D.move_to_end(next(iter(D)))"),
    Road("default_dict", "D = collections.defaultdict(float, a=2.0)", "D['a']", "D['a'] = i + 3.0"),
    Road("counter", "D = collections.Counter('aab')", "float(D['a'])", "D.update('a')"),
    Road("user_dict", "D = collections.UserDict(a=2.0)", "D['a']", "D['a'] = i + 3.0"),
    Road("chain_map", "D = collections.ChainMap({}, {'a': 2.0})", "D['a']", "D['a'] = i + 3.0"),
    Road("mapping_proxy", "H = {'a': 2.0}\nD = types.MappingProxyType(H)", "D['a']", "H['a'] = i + 3.0"),
    Road("set", "S = {1, 2}", "float(len(S))", "S.add(i + 3)"),
    Road("set_of_texts", "S = {'a'}", "2.0 if 'b' in S else 3.0", "S.symmetric_difference_update({'b'})"),
    Road("deque", "Q = collections.deque([2.0], maxlen=2)", "Q[-1]", "Q.append(i + 3.0)"),
    Road("deque_in_tuple", "Q = (1, (collections.deque([2.0]),))", "Q[1][0][0]", "Q[1][0][0] = i + 3.0"),
    Road("text", "T = 'ab'", "float(len(T))", "globals()['T'] = 'a' * (i + 3)"),
    Road("array_small", "A = np.ones(4)", "float(A[2])", "A[2] = i + 3.0"),
    Road("array_large", "A = np.ones((50, 50), np.float32)", "float(A[40, 40])", "A[40, 40] = i + 3.0"),
    Road("array_view", "B = np.ones((40, 40))\nA = B[::2, 1::3].T", "float(A[3, 5])", "B[:] = i + 3.0"),
    Road("array_scalar", "A = np.array(2.0)", "float(A)", "A[()] = i + 3.0"),
    Road("array_of_objects", "A = np.array([[2.0], None], dtype=object)", "A[0][0]", "A[0][0] = i + 3.0"),
    Road("array_of_records", "A = np.zeros(3, [('k', 'f4'), ('n', 'i4')])\nA['k'] = 2", "float(A['k'][1])", "A['k'][1] = i + 3.0"),
    Road("array_nan", "A = np.array([np.nan, 2.0])", "float(A[1])", "A[1] = i + 3.0"),
    Road("array_shape", "A = np.ones(6)", "float(A.shape[0])", "A.shape = (2, 3) if A.ndim == 1 else (6,)"),
    Road("array_in_dict", "A = {'a': [np.ones(100)]}", "float(A['a'][0][99])", "A['a'][0][99] = i + 3.0"),
    Road("numpy_scalar", "A = np.float32(2.0)", "float(A)", "globals()['A'] = np.float32(i + 3.0)"),
    Road("bytearray", "A = bytearray(b'\\x02')", "float(A[0])", "A[0] = i + 3"),
    Road("array_array", "A = array.array('d', [2.0])", "A[0]", "A[0] = i + 3.0"),
    Road("memory_view", "B = bytearray(b'\\x02')\nA = memoryview(B)", "float(A[0])", "B[0] = i + 3"),
    Road("default", "def k(l=[2.0]):\n    return l[-1]", "k()", "k.__defaults__[0].append(i + 3.0)"),
    Road("default_replaced", "def k(l=2.0):\n    return l", "k()", "k.__defaults__ = (i + 3.0,)"),
    Road("default_by_name", "def k(*, l={'a': 2.0}):\n    return l['a']", "k()", "k.__kwdefaults__['l']['a'] = i + 3.0"),
    Road("default_of_method", "class C:\n    def k(self, l=[2.0]):\n        return l[-1]\nO = C()", "O.k()", "C.k.__defaults__[0].append(i + 3.0)"),
    Road("default_in_dict", "D = {'f': lambda l=[2.0]: l[-1]}", "D['f']()", "D['f'].__defaults__[0].append(i + 3.0)"),
    Road("function_attribute", "def k():\n    return k.held\nk.held = 2.0", "k()", "k.held = i + 3.0"),
    Road("replaced_code", "def k():\n    return 2.0\ndef other():\n    return 7.0", "k()", "k.__code__ = other.__code__"),
    Road("closure", "def make():\n    k = 2.0\n    def get():\n        return k\n    def set_(v):\n        nonlocal k\n        k = v\n    return get, set_\nget, set_ = make()",
         "get()", "set_(i + 3.0)"),
    Road("closure_of_class", "L = [2.0]\ndef make(l):\n    class C:\n        def k(self):\n            return l[-1]\n    return C()\nO = make(L)", "O.k()", "L.append(i + 3.0)"),
    Road("closures_of_one_code", "def make(l):\n    return lambda: l[0]\nL = [2.0], [3.0]\nF = [make(l) for l in L]", "F[0]() * F[1]()", "L[1][0] = i + 3.0"),
    Road("wrapped", "def double(f):\n    @functools.wraps(f)\n    def w(*a):\n        return 2 * f(*a)\n    return w\nK = [2.0]\n@double\ndef k():\n    return K[0]", "k()", "K[0] = i + 3.0"),
    Road("partial", "L = [2.0]\nP = functools.partial(lambda l, j: l[j], L, j=-1)", "P()", "L.append(i + 3.0)"),
    Road("bound_method", "class C:\n    def __init__(self):\n        self.k = 2.0\n    def get(self):\n        return self.k\nO = C()\nG = O.get", "G()", "O.k = i + 3.0"),
    Road("callable", "class C:\n    def __init__(self):\n        self.k = [2.0]\n    def __call__(self):\n        return self.k[0]\nO = C()", "O()", "O.k[0] = i + 3.0"),
    Road("container_of_own", "class C(list):\n    pass\nO = C([1.0])\nO.k = 2.0", "O.k * O[0]", "O.k = i + 3.0"),
    Road("dict_of_own", "class C(dict):\n    def __getattr__(self, n):\n        return self[n]\nO = C(k=2.0)", "O.k", "O['k'] = i + 3.0"),
    Road("number_of_own", "class C(float):\n    pass\nO = C(1.0)\nO.k = 2.0", "O.k * float(O)", "O.k = i + 3.0"),
    Road("environment", "os.environ['TS_K'] = '2'", "float(os.environ['TS_K'])", "os.environ['TS_K'] = str(i + 3)"),
    Road("getenv", "os.environ.pop('TS_L', None)", "float(os.getenv('TS_L', '2'))", "os.environ['TS_L'] = str(i + 3)"),
    Road("in_environment", "os.environ.pop('TS_M', None)", "(2.0 if 'TS_M' in os.environ else 3.0)", "os.environ['TS_M'] = '1'"),
    Road("context_variable", "V = contextvars.ContextVar('V', default=2.0)", "V.get()", "V.set(i + 3.0)"),
    Road("thread_local", "T = threading.local()\nT.k = 2.0", "T.k", "T.k = i + 3.0"),
    Road("list_iterator", "I = iter([2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])", "next(I)"),
    Road("generator", "I = (j + 2.0 for j in range(99))", "next(I)"),
    Road("count", "I = itertools.count(2.0)", "next(I)"),
    Road("cycle_in_object", "class C: pass\nO = C()\nO.i = itertools.cycle([2.0, 3.0])", "next(O.i)"),
    Road("zip_in_dict", "D = {'z': zip(range(2, 99), range(99))}", "float(next(D['z'])[0])"),
    Road("own_iterator", "class C:\n    def __init__(self):\n        self.k = 1.0\n    def __iter__(self):\n        return self\n    def __next__(self):\n        self.k += 1\n        return self.k\nO = C()",
         "next(O)"),
    Road("cached_function", "K = 2.0\n@functools.lru_cache\ndef k(j):\n    return K * j", "k(2)", "k.cache_clear(); globals()['K'] = i + 3.0"),
    Road("cached_stale", "K = 2.0\n@functools.lru_cache\ndef k(j):\n    return K * j", "k(2)", "globals()['K'] = i + 3.0"),
    Road("random", "R = random.Random(3)", "R.random()"),
    Road("random_module", "random.seed(3)", "random.random()"),
    Road("numpy_generator", "R = np.random.default_rng(3)", "float(R.random())"),
    Road("numpy_state", "R = np.random.RandomState(3)", "float(R.rand())"),
    Road("numpy_module", "np.random.seed(3)", "float(np.random.rand())"),
    Road("random_in_object", "class C: pass\nO = C()\nO.r = [random.Random(3)]", "O.r[0].random()"),
    Road("file", "F = tempfile.NamedTemporaryFile('w+', delete=False).name\npathlib.Path(F).write_text('2')", "float(pathlib.Path(F).read_text())", "pathlib.Path(F).write_text(str(i + 3))"),
    Road("file_exists", "F = tempfile.mkdtemp() + '/x'", "(2.0 if os.path.exists(F) else 3.0)", "open(F, 'w').close()"),
    Road("class_of_an_object_replaced", "class C:\n    def k(self):\n        return 2.0\nclass D:\n    def k(self):\n        return 3.0\nO = C()", "O.k()",
         "O.__class__ = D if type(O) is C else C"),
    Road("bases_replaced", "class B:\n    k = 2.0\nclass A:\n    k = 3.0\nclass C(B):\n    pass\nO = C()", "O.k",
         "C.__bases__ = (A,) if C.__bases__ == (B,) else (B,)"),
    Road("builtin_hidden", "", "float(abs(-2.0))", "globals()['abs'] = lambda v: i + 3.0"),
    Road("variable_that_comes", "def get():\n    try:\n        return K\n    except NameError:\n        return 2.0", "get()", "globals()['K'] = i + 3.0"),
    Road("import_replaced", "def get():\n    import of_a_road\n    return of_a_road.K\ndef put(k):\n    made = types.ModuleType('of_a_road')\n    made.K = k\n"
         "    sys.modules['of_a_road'] = made\nput(2.0)", "get()", "put(i + 3.0)"),
    Road("module_by_computed_name", "import types\nM = types.ModuleType('m')\nM.width1 = 2.0", "getattr(M, f'width{len(str(x.ndim))}')", "M.width1 = i + 3.0"),
    Road("single_dispatch", "@functools.singledispatch\ndef k(v):\n    return 2.0", "k(1)", "k.register(int, lambda v: i + 3.0)"),
    Road("single_dispatch_method", "class C:\n    @functools.singledispatchmethod\n    def k(self, v):\n        return 2.0\nO = C()", "O.k(1)",
         "C.__dict__['k'].register(int, lambda self, v: i + 3.0)"),
    Road("flags_of_a_cell", "F = nn.ReLU()\nF.add_flags(k=2.0)", "F.get_flags()['k']", "F.add_flags(k=i + 3.0)"),
    # What the whole process shares: the second change puts it back.
    Road("library_function_replaced", "ROOT = math.sqrt", "math.sqrt(4.0)", "math.sqrt = ROOT if i == 4 else (lambda v: v + i)"),
    Road("library_function_of_a_package", "NAME = os.path.basename", "float(len(os.path.basename('a/bc')))",
         "os.path.basename = NAME if i == 4 else (lambda v: v + 'i' * i)"),
    Road("numpy_function_replaced", "PROD = np.prod", "float(np.prod((2, 3)))", "np.prod = PROD if i == 4 else (lambda v: i + 7.0)"),
    Road("builtin_of_all_replaced", "import builtins\nABS = abs", "float(abs(-2.0))", "builtins.abs = ABS if i == 4 else (lambda v: i + 3.0)"),
    Road("operator_replaced", "RELU = ops.abs", "float(ops.abs(Tensor([-2.0])).shape[0])", "ops.abs = RELU if i == 4 else (lambda v: ops.zeros(5))"),
    Road("argv", "ARGV = sys.argv", "float(len(sys.argv))", "sys.argv = ARGV if i == 4 else ARGV + ['a']"),
    Road("argv_appended", "", "float(len(sys.argv))", "sys.argv.pop() if i == 4 else sys.argv.append('a')"),
    Road("decimal_context", "import decimal\ndecimal.getcontext().prec = 28", "float(decimal.Decimal(1) / decimal.Decimal(3))",
         "decimal.getcontext().prec = 28 if i == 4 else 3"),
    Road("decimal_of_own", "import decimal\nfrom decimal import Decimal\nD = Decimal(1)", "float(D / 3)", "decimal.getcontext().prec = 28 if i == 4 else 3"),
    Road("numpy_errors", "def get():\n    try:\n        return float(np.float32(1) / np.float32(0) > 0)\n    except FloatingPointError:\n        return 2.0\n"
         "np.seterr(divide='ignore')", "get()", "np.seterr(divide='ignore' if i == 4 else 'raise')"),
    Road("numpy_format", "", "float(len(str(np.array([1.23456789]))))", "np.set_printoptions(precision=8 if i == 4 else 2)"),
    Road("recursion_limit", "LIMIT = sys.getrecursionlimit()", "float(sys.getrecursionlimit())", "sys.setrecursionlimit(LIMIT if i == 4 else LIMIT + 1)"),
    Road("garbage_collector", "import gc", "float(gc.isenabled())", "gc.enable() if i == 4 else gc.disable()"),
    Road("thread_name", "MINE = threading.current_thread().name", "float(len(threading.current_thread().name))",
         "threading.current_thread().name = MINE if i == 4 else 'a'"),
    Road("logger_asked", "import logging\nL = logging.getLogger('ts_road')\nL.setLevel(30)", "(2.0 if L.isEnabledFor(25) else 3.0)", "L.setLevel(30 if i == 4 else 20)"),
    Road("logger_level", "import logging\nL = logging.getLogger('ts_road')\nL.setLevel(30)", "float(L.level)", "L.setLevel(i + 31)"),
    Road("logger_above", "import logging\nL, M = logging.getLogger('ts_road.a'), logging.getLogger('ts_road')\nL.setLevel(0)\nM.setLevel(30)",
         "float(L.getEffectiveLevel())", "M.setLevel(i + 31)"),
    Road("tensor_attribute", "T = Tensor([1.0])\nT.k = 2.0", "T.k", "T.k = i + 3.0"),
    Road("parameter_attribute", "P = ms.Parameter(Tensor([1.0]), name='p')\nP.k = 2.0", "P.k", "P.k = i + 3.0"),
    Road("parameter_name", "P = ms.Parameter(Tensor([1.0]), name='p')", "float(len(P.name))", "P.name += 'p'"),
    Road("parameter_flag", "P = ms.Parameter(Tensor([1.0]), name='p')", "(2.0 if P.requires_grad else 3.0)", "P.requires_grad = not P.requires_grad"),
    Road("builtin_replaced", "K = max", "float(K(2, 3))", "globals()['K'] = min if K is max else max"),
    Road("class_replaced", "class C:\n    k = 2.0\nclass D:\n    k = 3.0\nK = C", "K.k", "globals()['K'] = D if K is C else C"),
    Road("module_replaced", "M, N = types.ModuleType('m'), types.ModuleType('n')\nM.k, N.k = 2.0, 3.0\nK = M", "K.k", "globals()['K'] = N if K is M else M"),
    Road("closure_replaced", "def make():\n    k = math.floor\n    def get():\n        return float(k(2.5))\n    def set_(v):\n        nonlocal k\n        k = v\n"
         "    return get, set_\nget, set_ = make()", "get()", "set_(math.ceil)"),
    Road("metaclass_hidden", "class M(type):\n    k = 2.0\nclass C(metaclass=M):\n    pass", "C.k", "C.k = i + 3.0"),
    Road("dict_values", "D = {'a': 2.0}\nV = D.values()", "sum(V)", "D[i] = 1.0"),
    Road("dict_keys_of_ordered", "D = collections.OrderedDict(a=1, bb=2)\nV = D.keys()", "float(len(next(iter(V))))", "D.move_to_end(next(iter(D)))"),
    Road("bound_get", "D = {'a': 2.0}\nG = D.get", "G('a')", "D['a'] = i + 3.0"),
    Road("method_caller", "class C: pass\nC.k = 2.0\nO = C()\nC.add = lambda self, o: self.k + o.k\nH = C()\nH.k = 1.0\nG = operator.methodcaller('add', H)",
         "G(O)", "H.k = i + 3.0"),
    Road("ctypes_array", "A = (ctypes.c_float * 2)(1.0, 2.0)", "A[1]", "A[1] = i + 3.0"),
    Road("ctypes_struct", "class C(ctypes.Structure):\n    _fields_ = [('k', ctypes.c_double)]\nO = C(2.0)", "O.k", "O.k = i + 3.0"),
    Road("weak_reference", "class C: pass\nO = C()\nO.k = 2.0\nH = weakref.ref(O)", "H().k", "O.k = i + 3.0"),
    Road("weak_method", "class C:\n    k = 2.0\n    def get(self):\n        return self.k\nO = C()\nH = weakref.WeakMethod(O.get)", "H()()", "O.k = i + 3.0"),
    Road("simple_queue", "Q = queue.SimpleQueue()\nfor j in range(99): Q.put(j + 2.0)", "Q.get()"),
    Road("text_stream", "S = io.StringIO('2\\n3\\n4\\n5\\n6\\n7\\n8\\n')", "float(S.readline())"),
    Road("text_stream_place", "S = io.StringIO('abcdefg')", "float(S.tell())", "S.read(1)"),
    Road("byte_stream", "S = io.BytesIO(b'a')", "float(len(S.getvalue()))", "S.write(b'a' * i)"),
    Road("stream_of_own", "class C(io.StringIO):\n    pass\nS = C('')", "float(len(S.getvalue()))", "S.write('a')"),
    Road("hash", "H = hashlib.md5()", "float(H.digest()[0])", "H.update(b'a')"),
    Road("lines_of_a_file", "F = tempfile.TemporaryFile('w+')\nF.write('2\\n3\\n4\\n5\\n6\\n7\\n')\nF.seek(0)", "float(next(F))"),
    Road("open_file", "F = tempfile.TemporaryFile('w+')\nF.write('2\\n3\\n4\\n5\\n6\\n7\\n')\nF.seek(0)", "float(F.readline())"),
    Road("tensor_method_replaced", "SUM = Tensor.sum", "x.sum()", "Tensor.sum = SUM if i == 4 else (lambda t: SUM(t) * 10)"),
    Road("tensor_operator_replaced", "ADD = Tensor.__add__", "(x + 1)", "Tensor.__add__ = ADD if i == 4 else (lambda t, o: ADD(t, o) * 10)"),
    Road("tensor_method_that_comes", "", "(x.at_last() if hasattr(x, 'at_last') else 2.0)",
         "delattr(Tensor, 'at_last') if i == 4 else setattr(Tensor, 'at_last', lambda t: 3.0)"),
    Road("parameter_method_replaced", "P = ms.Parameter(Tensor([2.0]), name='p')\nVALUE = ms.Parameter.value", "float(P.value().shape[0])",
         "ms.Parameter.value = VALUE if i == 4 else (lambda p: ops.ones(5))"),
    Road("library_class_attribute", "nn.ReLU.ts_k = 2.0\nR = nn.ReLU()", "R.ts_k", "nn.ReLU.ts_k = i + 3.0"),
    Road("library_method_replaced", "R = nn.SequentialCell(nn.ReLU())\nOWNER = next(c for c in nn.Cell.__mro__ if 'cells' in vars(c))\nCELLS = OWNER.cells",
         "float(len(list(R.cells())))", "OWNER.cells = CELLS if i == 4 else (lambda c: [1, 2, 3])"),
    Road("library_method_that_comes", "R = nn.ReLU()", "(R.ts_m() if hasattr(R, 'ts_m') else 2.0)",
         "delattr(nn.Cell, 'ts_m') if i == 4 else setattr(nn.Cell, 'ts_m', lambda c: 3.0)"),
    Road("class_attribute_that_comes", "class C: pass\nO = C()", "getattr(O, 'k', 2.0)", "C.k = i + 3.0"),
    Road("registered", "import abc\nclass B(abc.ABC): pass\nclass C: pass\nO = C()", "(2.0 if isinstance(O, B) else 3.0)", "B.register(C)"),
    Road("registered_with_a_librarys", "import numbers\nclass C: pass\nO = C()", "(2.0 if isinstance(O, numbers.Number) else 3.0)", "numbers.Number.register(C)"),
    Road("subclasses", "class C: pass\nH = []", "float(len(C.__subclasses__()))", "H.append(type('D', (C,), {}))"),
    Road("function_name", "def k(): pass", "float(len(k.__name__))", "k.__name__ += 'k'"),
    Road("class_name", "class C: pass\nO = C()", "float(len(type(O).__name__ + O.__class__.__qualname__))", "C.__name__ += 'k'"),
    Road("function_doc", "def k():\n    'k'", "float(len(k.__doc__))", "k.__doc__ += 'k'"),
    Road("function_annotations", "def k(a: int): pass", "float(len(k.__annotations__))", "k.__annotations__[str(i)] = int"),
    Road("globals_computed", "K1 = 2.0", "globals()[f'K{len(str(x.ndim))}']", "globals()['K1'] = i + 3.0"),
    Road("globals_get", "", "globals().get('K', 2.0)", "globals()['K'] = i + 3.0"),
    Road("globals_in", "", "(2.0 if 'K' in globals() else 3.0)", "globals().pop('K') if i == 4 else globals().update(K=1)"),
    Road("globals_all", "", "float(len([k for k in globals() if k[:3] == 'TS_']))", "globals()[f'TS_{i}'] = 1"),
    Road("function_by_computed_name", "import types\nM = types.ModuleType('m')\nM.k1 = lambda: 2.0", "getattr(M, f'k{len(str(x.ndim))}')()", "M.k1 = lambda: i + 3.0"),
    Road("class_by_computed_name", "class C:\n    k1 = 2.0", "getattr(C, f'k{len(str(x.ndim))}')", "C.k1 = i + 3.0"),
    Road("method_by_computed_name", "class C:\n    def k1(self):\n        return 2.0\nO = C()", "getattr(O, f'k{len(str(x.ndim))}')()", "C.k1 = lambda self: i + 3.0"),
    Road("cells_method_by_computed_name", "class C(nn.Cell):\n    def k1(self):\n        return 2.0\nO = C()", "getattr(O, f'k{len(str(x.ndim))}')()",
         "C.k1 = lambda self: i + 3.0"),
    Road("cells_method_of_its_class", "class C(nn.Cell):\n    def k1(self):\n        return 2.0\nO = C()", "getattr(type(O), f'k{len(str(x.ndim))}')(O)",
         "C.k1 = lambda self: i + 3.0"),
    Road("cells_static_method_of_its_class", "class C(nn.Cell):\n    @staticmethod\n    def k1():\n        return 2.0\nO = C()", "getattr(O.__class__, f'k{len(str(x.ndim))}')()",
         "C.k1 = staticmethod(lambda: i + 3.0)"),
    Road("cells_method_of_its_base", "class B(nn.Cell):\n    def k1(self):\n        return 2.0\nclass C(B):\n    pass\nO = C()", "getattr(super(C, O), f'k{len(str(x.ndim))}')()",
         "B.k1 = lambda self: i + 3.0"),
    Road("cells_method_in_its_vars", "class C(nn.Cell):\n    def k1(self):\n        return 2.0\nO = C()", "vars(type(O))[f'k{len(str(x.ndim))}'](O)", "C.k1 = lambda self: i + 3.0"),
    Road("cells_method_by_attrgetter", "class C(nn.Cell):\n    def k1(self):\n        return 2.0\nO = C()", "operator.attrgetter(f'k{len(str(x.ndim))}')(type(O))(O)",
         "C.k1 = lambda self: i + 3.0"),
    Road("class_of_a_list_by_computed_name", "class C(nn.Cell):\n    k1 = 2.0\nL = [C]", "getattr(L[0], f'k{len(str(x.ndim))}')", "C.k1 = i + 3.0"),
    Road("object_by_computed_name", "@dataclasses.dataclass\nclass C:\n    w: float = 2.0\nM = types.ModuleType('m')\nM.k1 = C()", "getattr(M, f'k{len(str(x.ndim))}').w",
         "M.k1.w = i + 3.0"),
    Road("object_in_vars", "class C: pass\nclass D:\n    k1 = C()\nD.k1.w = 2.0", "vars(D)[f'k{len(str(x.ndim))}'].w", "D.k1.w = i + 3.0"),
    Road("partial_by_computed_name", "class D:\n    k1 = functools.partial(float, '2')", "getattr(D, f'k{len(str(x.ndim))}')()", "D.k1 = functools.partial(float, str(i + 3))"),
    Road("deque_by_computed_name", "M = types.ModuleType('m')\nM.k1 = collections.deque([2.0])", "getattr(M, f'k{len(str(x.ndim))}')[0]", "M.k1[0] = i + 3.0"),
    Road("path_of_names", "class C: pass\nO = C()\nO.k = C()\nO.k.w = 2.0\nP = 'k.w'", "functools.reduce(getattr, P.split('.'), O)", "O.k.w = i + 3.0"),
    Road("copied_in_a_library", "@dataclasses.dataclass\nclass C:\n    w: float = 2.0\nO = C()", "dataclasses.asdict(O)['w']", "O.w = i + 3.0"),
    Road("module_that_makes_names", "M = types.ModuleType('m')\nM.__getattr__ = lambda n: 2.0", "getattr(M, f'k{len(str(x.ndim))}')", "M.__getattr__ = lambda n: i + 3.0"),
    Road("method_of_a_cell_that_is_made", "class C(nn.Cell):\n    def k1(self):\n        return 2.0\n    def construct(self, x):\n        return getattr(self, 'k' + str(x.ndim))()",
         "C()(x)", "C.k1 = lambda self: i + 3.0"),
    Road("librarys_construct_replaced", "OLD = nn.ReLU.construct", "nn.ReLU()(x).sum()", "nn.ReLU.construct = OLD if i == 4 else lambda self, x: x * (i + 3.0)"),
    Road("class_of_a_cell_replaced", "class C(nn.Cell):\n    def construct(self, x):\n        return 2.0\nclass D(nn.Cell):\n    def construct(self, x):\n        return 3.0\nO = C()",
         "O(x)", "O.__class__ = D if type(O) is C else C"),
    Road("class_of_a_cell_asked", "class C(nn.Cell): pass\nclass D(C): pass\nL = nn.CellList([C()])", "(2.0 if isinstance(L[0], D) else 3.0)",
         "L[0].__class__ = D if type(L[0]) is C else C"),
    Road("names_of_a_class", "class C: pass", "float(len(dir(C)))", "setattr(C, f'k{i}', 1)"),
    Road("names_of_a_module", "M = types.ModuleType('m')", "float(len(vars(M)))", "setattr(M, f'k{i}', 1)"),
]

EFFECTS = [
    Road("append", "S = []", "S.append(1)"),
    Road("list_item", "S = [0] * 5000", "S.__setitem__(4999, S[4999] + 1)"),
    Road("dict_count", "S = {'n': 0}", "S.update(n=S['n'] + 1)"),
    Road("counter", "S = collections.Counter()", "S.update('ab')"),
    Road("default_dict", "S = collections.defaultdict(list)", "S['a'].append(1)"),
    Road("deque", "S = collections.deque(maxlen=3)", "S.append(len(S))"),
    Road("set", "S = set()", "S.add(len(S))"),
    Road("array", "S = np.zeros(3)", "np.add(S, 1, out=S)"),
    Road("array_large", "S = np.zeros((30, 30))", "S.__iadd__(1)"),
    Road("array_of_objects", "S = np.empty(2, dtype=object)\nS[0] = []", "S[0].append(1)" ),
    Road("bytearray", "S = bytearray(2)", "S.append(1)"),
    Road("array_array", "S = array.array('d')", "S.append(1.0)"),
    Road("object", "class C:\n    n = 0\n    def __repr__(self):\n        return str(self.n)\nS = C()", "setattr(S, 'n', S.n + 1)"),
    Road("slots", "class C:\n    __slots__ = ('n',)\n    def __repr__(self):\n        return str(self.n)\nS = C()\nS.n = 0", "setattr(S, 'n', S.n + 1)"),
    Road("class", "class S:\n    n = 0\n    def __class_getitem__(cls, k):\n        return cls.n", "setattr(S, 'n', S.n + 1)"),
    Road("module", "S = types.ModuleType('s')\nS.n = 0", "setattr(S, 'n', S.n + 1)"),
    Road("function", "def S():\n    S.n += 1\nS.n = 0", "S()"),
    Road("global", "N = 0\ndef bump():\n    global N\n    N += 1\nclass S:\n    pass", "bump()"),
    Road("new_global", "def bump():\n    global FRESH\n    FRESH = globals().get('FRESH', 0) + 1\nclass S:\n    pass", "bump()"),
    Road("nonlocal", "def make():\n    n = 0\n    def bump():\n        nonlocal n\n        n += 1\n    return bump, lambda: n\nS, peek = make()", "S()"),
    Road("default", "def S(l=[]):\n    l.append(1)", "S()"),
    Road("hidden", "class C:\n    def __init__(self):\n        self.__log = {'a': [(collections.deque(),)]}\n    def add(self):\n        self.__log['a'][0][0].append(1)\n"
         "    def __repr__(self):\n        return repr(self.__log)\nS = C()", "S.add()"),
    Road("bound", "class C:\n    def __init__(self):\n        self.log = []\n    def add(self):\n        self.log.append(1)\n    def __repr__(self):\n        return repr(self.log)\n"
         "S = C()\nADD = S.add", "ADD()"),
    Road("builtin_bound", "S = []\nADD = S.append", "ADD(1)"),
    Road("partial", "S = []\nADD = functools.partial(S.append, 1)", "ADD()"),
    Road("random", "S = random.Random(1)", "S.random()"),
    Road("shuffle", "S = list(range(9))\nR = random.Random(1)", "R.shuffle(S)"),
    Road("numpy_generator", "S = np.random.default_rng(1)", "S.random()"),
    Road("iterator", "S = iter(range(99))", "next(S)"),
    Road("count", "S = itertools.count()", "next(S)"),
    Road("environment", "os.environ['TS_N'] = '0'\nS = os.environ", "os.environ.__setitem__('TS_N', os.environ['TS_N'] + '1')"),
    Road("file", "F = tempfile.mktemp()\nS = F\ndef add():\n    with open(F, 'a') as f:\n        f.write('a')", "add()"),
    Road("cached", "S = []\n@functools.lru_cache\ndef k(n):\n    S.append(n)", "k(len(S) // 2)"),
    Road("ordered", "S = collections.OrderedDict(a=1, b=2)", "S.move_to_end(next(iter(S)))"),
    Road("ctypes_array", "A = (ctypes.c_int * 1)()\ndef S():\n    A[0] += 1\n    S.n = A[0]\nS.n = 0", "S()"),
    Road("simple_queue", "Q = queue.SimpleQueue()\ndef S():\n    Q.put(1)\n    S.n = Q.qsize()\nS.n = 0", "S()"),
    Road("text_stream", "Q = io.StringIO()\ndef S():\n    Q.write('a')\n    S.n = Q.tell()\nS.n = 0", "S()"),
    Road("hash", "H = hashlib.md5()\ndef S():\n    H.update(b'a')\n    S.n = H.hexdigest()\nS.n = 0", "S()"),
    Road("context_variable", "V = contextvars.ContextVar('V', default=0)\nS = V", "V.set(V.get() + 1)"),
    Road("messages", "import logging\nS = []\nclass H(logging.Handler):\n    def emit(self, record):\n        S.append(record.getMessage())\n"
         "L = logging.getLogger('ts_effect')\nL.handlers, L.propagate = [H()], False\nL.setLevel(30)", "L.info('seen')", "L.setLevel(30 if i == 4 else 20)"),
    Road("thread_local", "S = threading.local()\nS.n = 0", "setattr(S, 'n', S.n + 1)"),
]

CONTEXTS = {
    "jit": "@ms.jit\ndef run(x):\n    {effect}\n    return x * ({read})",
    "cell": "class Net(nn.Cell):\n    def construct(self, x):\n        {effect}\n        return x * ({read})\nrun = Net()",
    "helper": "def helper(x):\n    {effect}\n    return x * ({read})\nclass Net(nn.Cell):\n    def construct(self, x):\n        y = x + 1\n        return helper(y) + y\nrun = Net()",
    "branch": "class Net(nn.Cell):\n    def construct(self, x):\n        y = x + 1\n        if y.sum() > 0:\n            y = y * 2\n        {effect}\n        return y * ({read})\nrun = Net()",
    "inner": "class Inner(nn.Cell):\n    def construct(self, x):\n        {effect}\n        return x * ({read})\n"
             "class Net(nn.Cell):\n    def __init__(self):\n        super().__init__()\n        self.inner = Inner()\n    def construct(self, x):\n        return self.inner(x) + 1\nrun = Net()",
    "gradient": "def loss(x):\n    {effect}\n    return (x * x * ({read})).sum()\nrun = ms.value_and_grad(loss)",
    "trained": "class Net(nn.Cell):\n    def __init__(self):\n        super().__init__()\n        self.w = ms.Parameter(np.ones(2, np.float32), name='w')\n"
               "    def construct(self, x):\n        {effect}\n        return (x * self.w * ({read})).sum()\nnet = Net()\n"
               "run = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))\nrun.set_train()",
    "attribute": None,           # what the road holds is also an attribute of the Cell
}


def text_of(road: Road, context: str, is_effect: bool = False) -> str:
    """The program of a road in a context."""
    template = CONTEXTS[context]
    if template is None:
        content = [line.split(" = ")[0] for line in road.setup.splitlines() if " = " in line and line[0] in "ACDEFGHIKLNOPQRSTV"]
        names = [name for name in content if name.isidentifier() and name not in ("F",)]
        local = "".join(f"        {name} = self.{name}\n" for name in names)
        assignments = "".join(f"        self.{name} = {name}\n" for name in names)
        template = ("class Net(nn.Cell):\n    def __init__(self):\n        super().__init__()\n" + assignments + "    def construct(self, x):\n"
                    + local + "        {effect}\n        return x * ({read})\nrun = Net()")
        if "globals()['" in road.change:
            template = str(CONTEXTS["cell"])
    read, effect = ("2.0", road.read) if is_effect else (road.read, "pass")
    return "\n".join([
        HEAD, road.setup, template.replace("{effect}", effect).replace("{read}", read), "X = Tensor(np.array([1.0, 2.0], np.float32))",
        "def call():\n    return run(X)", f"def change(i):\n    {road.change}\n", _SEEN if is_effect else "def seen():\n    return None\n",
    ])


_SEEN = '''
def seen():
    if isinstance(S, (random.Random,)):
        return S.getstate()[1][:3], S.getstate()[1][-1]
    if isinstance(S, np.random.Generator):
        return str(S.bit_generator.state)
    if isinstance(S, np.ndarray):
        return S.tolist()
    if isinstance(S, contextvars.ContextVar):
        return S.get()
    if isinstance(S, os._Environ):
        return S["TS_N"]
    if isinstance(S, str) and os.path.exists(S):
        return pathlib.Path(S).read_text()
    if hasattr(S, "__length_hint__"):
        return S.__length_hint__()
    if "peek" in globals():
        return peek()
    if isinstance(S, types.FunctionType):
        return getattr(S, "n", None), repr(S.__defaults__)
    return getattr(S, "n", None), globals().get("N"), globals().get("FRESH"), repr(S) if not isinstance(S, (type, types.ModuleType, threading.local)) else None
'''

_count = 0


def load(text: str, folder: Path) -> ModuleType:
    """A fresh module of the program."""
    global _count
    _count += 1
    name = f"state_program_{_count}"
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def plain(value: Any) -> Any:
    """A result as Python numbers."""
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return [round(float(v), 4) for v in value.asnumpy().ravel()] if hasattr(value, "asnumpy") else value


def history(text: str, folder: Path, mode: int, calls: int = 6) -> list[Any]:
    """What the program shows, call by call; the state changes before every second call."""
    import mindspore as ms

    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    shown: list[Any] = []
    try:
        module = load(text, folder)
        call = module.call
        if mode == 1:
            ms.context.set_context(mode=1)
        for i in range(calls):
            if i and i % 2 == 0:
                module.change(i)
            try:
                shown.append((plain(call()), module.seen()))
            except (ValueError, RuntimeError, TypeError, KeyError, StopIteration) as error:
                shown.append((type(error).__name__, module.seen()))
    finally:
        ms.set_context(mode=before)
        __import__("numpy").seterr(divide="warn")
        for name in ("TS_K", "TS_L", "TS_M", "TS_N"):
            __import__("os").environ.pop(name, None)
    return shown


def sample(seed: int) -> Iterator[tuple[Road, str, bool]]:
    """Each road once, in a context drawn by `seed`."""
    draw = random.Random(seed)
    for is_effect, roads in ((False, ROADS), (True, EFFECTS)):
        for road in roads:
            yield road, draw.choice(list(CONTEXTS)), is_effect
