"""What the Cells of a training step say of bad arguments."""
from __future__ import annotations

import pytest
from mindspore import Parameter, Tensor, boost, nn
from mindspore.nn.wrap import loss_scale
from support.error_messages import Bad, check

NET = nn.ReLU()
STEP = "TrainOneStepWithLossScaleCell"


def sgd():
    return nn.SGD([Parameter(Tensor([1.0, 2.0]), name="w")], 0.1)


def boosted():
    net = nn.Dense(2, 1)
    return boost.BoostTrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))


BAD = {
    "loss cell": Bad(lambda: nn.WithLossCell(3, NET), TypeError, "WithLossCell(backbone=3)", "expected a Cell, got int."),
    "eval flag": Bad(
        lambda: nn.WithEvalCell(NET, nn.MSELoss(), 1), TypeError, "WithEvalCell(add_cast_fp32=1)", "expected True or False.",
    ),
    "step": Bad(
        lambda: nn.TrainOneStepCell(NET, 3), TypeError, "TrainOneStepCell(optimizer=3)", "expected an optimizer, which has parameters.",
    ),
    "forward": Bad(lambda: nn.ForwardValueAndGrad(3), TypeError, "ForwardValueAndGrad(network=3)", "expected a Cell or a function."),
    "forward flag": Bad(
        lambda: nn.ForwardValueAndGrad(NET, get_all=1), TypeError, "ForwardValueAndGrad(get_all=1)", "expected True or False.",
    ),
    "forward weights": Bad(
        lambda: nn.ForwardValueAndGrad(NET, get_by_list=True), TypeError,
        "ForwardValueAndGrad(get_by_list=True)", "expected weights: a list of Parameters.",
    ),
    "update": Bad(lambda: nn.ParameterUpdate(3), TypeError, "ParameterUpdate(3)", "expected a Parameter, got int."),
    "scale shape": Bad(
        lambda: nn.TrainOneStepWithLossScaleCell(NET, sgd(), Tensor([1.0, 2.0])), ValueError,
        f"{STEP}(scale_sense of shape [2])", "expected shape () or (1,).",
    ),
    "scale type": Bad(
        lambda: nn.TrainOneStepWithLossScaleCell(NET, sgd(), "a"), TypeError,
        f"{STEP}(scale_sense='a')", "expected a Cell or a Tensor, got str.",
    ),
    "no accumulation": Bad(
        lambda: boosted().gradient_accumulation_process(1, (), 1), ValueError,
        "BoostTrainOneStepCell.gradient_accumulation_process of a step that adds no gradients up",
        "expected AutoBoost with grad_accumulation.",
    ),
    "no freezing": Bad(
        lambda: boosted().gradient_freeze_process(1), ValueError,
        "BoostTrainOneStepCell.gradient_freeze_process with SGD", "expected an optimizer inside of FreezeOpt.",
    ),
    "groups": Bad(
        lambda: boost.OptimizerProcess.build_gc_params_group({}, [3]), TypeError,
        "OptimizerProcess.build_gc_params_group(parameters=[3])", "expected a list of groups.",
    ),
    "reciprocal": Bad(
        lambda: loss_scale.tensor_grad_scale(2.0, Tensor(1.0)), TypeError,
        "grad_scale(scale=2.0)", "expected a Tensor, got float.", "write Tensor(scale).",
    ),
    "layerwise": Bad(
        lambda: nn.LARS(sgd())((None, None)), TypeError,
        "LARS(gradients)", "expected a tuple of gradients, one for each Parameter, got NoneType at index 0.",
    ),
    "rows": Bad(
        lambda: loss_scale.tensor_grad_scale_row_tensor(Tensor(2.0), 3), TypeError, "grad_scale(grad=3)", "expected a RowTensor, got int.",
    ),
    "reducer": Bad(
        lambda: nn.DistributedGradReducer(range(3)), TypeError,
        "DistributedGradReducer(parameters=[0, 1, 2])", "expected a list of Parameters, got list.", "write optimizer.parameters.",
    ),
    "encoder": Bad(lambda: nn.TransformerEncoder(3, 2**31), TypeError, "TransformerEncoder(3)", "expected a layer, got int."),
    "decoder": Bad(
        lambda: nn.TransformerDecoder(NET, "a"), TypeError, "TransformerDecoder(num_layers='a')", "expected an int, got str.",
    ),
    "set scale": Bad(
        lambda: nn.TrainOneStepWithLossScaleCell(NET, sgd(), Tensor(1.0)).set_sense_scale(3), TypeError,
        "set_sense_scale(3)", "expected a Tensor, got int.",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_the_message(name: str) -> None:
    check(BAD[name])
