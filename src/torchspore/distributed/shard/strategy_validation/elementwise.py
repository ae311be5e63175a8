"""Elementwise operators, with broadcasting."""
from __future__ import annotations

from torchspore.distributed.shard.strategy_validation.axis_labels import UNCUT, Call, Family, Form, Labels, labels


def elementwise(call: Call) -> Form:
    """All inputs broadcast against each other, counted from the last axis."""
    rank = max(map(len, call.shapes))
    sizes = [
        max((shape[axis - rank + len(shape)] for shape in call.shapes if axis >= rank - len(shape)), default=1) for axis in range(rank)
    ]
    axes = labels(rank)

    def of(shape: tuple[int, ...]) -> Labels:
        ahead = rank - len(shape)
        return tuple(UNCUT if size == 1 < sizes[ahead + axis] else axes[ahead + axis] for axis, size in enumerate(shape))

    # MindSpore looks at no strategy of a Cast that does not fit.
    return Form(inputs=tuple(map(of, call.shapes)), outputs=(axes,), order=axes, lenient=call.name == "Cast")


_TWO = """
Add Sub Mul Div RealDiv FloorDiv FloorMod Mod Pow Maximum Minimum SquaredDifference Atan2 DivNoNan TruncateDiv TruncateMod Xdivy Xlogy
Equal NotEqual Greater GreaterEqual Less LessEqual ApproximateEqual MulNoNan LogicalAnd LogicalOr LogicalXor BitwiseAnd BitwiseOr
BitwiseXor Assign AssignAdd AssignSub Hypot NextAfter Zeta Gcd Lcm Heaviside Lerp LerpScalar Select MaskedFill AddExt SubExt AddN
Accumulate LeftShift RightShift FmodTensor RemainderTensorTensor RemainderScalarTensor DivMod DivMods IsClose Igamma Igammac Betainc Polar
AddcmulExt QuantV2 Dequant AntiQuant InplaceAddExt InplaceSubExt InplaceMul InplaceDiv InplaceFloorDivide InplaceCopy
"""
_UNARY = """
Abs ACos Acosh ACosh Asin Asinh Atan Atanh BesselI0e BesselI1e BesselI0 BesselI1 BesselJ0 BesselJ1 Cast Ceil Cos Cosh Digamma Dropout
DropoutExt Elu EluExt Erf Erfc Erfinv Exp Expm1 FastGeLU Floor GeLU GeluExt HShrink HSigmoid HSwish Identity Inv Invert IsFinite IsInf
IsNan Lgamma LogicalNot Log Log1p Log2 LogSigmoid Mish Neg OnesLike Reciprocal ReLU ReLU6 ReLUV2 Rint Round Rsqrt SeLU Sigmoid SiLU SiLUEx
Sign Sin Sinh SoftShrink Softplus Softsign Sqrt Square Tan Tanh Trunc ZerosLike FillV2 UniformReal StandardNormal
SigmoidCrossEntropyWithLogits SoftplusExt LeakyReLU LeakyReLUExt ClampScalar Muls PopulationCount NanToNum FmodScalar
RemainderTensorScalar Quant Tril Triu InplaceAddsExt InplaceSubScalar InplaceMuls InplaceDivs InplaceFloorDivides
"""
def broadcasts(call: Call) -> bool:
    """Return whether the shapes of an elementwise call fit each other."""
    rank = max(map(len, call.shapes))
    columns = ({shape[axis - rank + len(shape)] for shape in call.shapes if axis >= rank - len(shape)} for axis in range(rank))
    return all(len(sizes - {1}) <= 1 for sizes in columns)


FAMILIES: dict[str, Family] = dict.fromkeys((_TWO + _UNARY).split(), elementwise)
