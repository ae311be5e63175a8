"""Tests that do not run on the stand-in, each with its reason. A pattern is compared with the end of a test's name."""
from __future__ import annotations

from fnmatch import fnmatchcase

_CPU_NAMED = "it compares a message that names the CPU"
_SHARED = "an accelerator does not share memory with NumPy's arrays"
_MASKS = "random numbers of the CPU are MindSpore's; those of an accelerator come from torch's generator"
_TORCH = "its torch tensors and modules are on the host, and the program does not move them"
_TIES = "the order of equal values on the CPU is that of MindSpore's CPU kernels; an accelerator has torch's"
SKIPPED = {
    "test_cases.py::test_case[[]unusual_forms:form[[]LayerNorm of float16]]":
        "the CPU adds up float16 in MindSpore's order; the kernels of an accelerator differ in the last digit",
    "test_cases.py::test_case[[]equal_values:topk*": _TIES,
    "test_cases.py::test_case[[]equal_values:suppressed_boxes]": _TIES,
    "test_equal_values.py::test_nms_takes_equal_scores_in_the_order_of_a_bitonic_sort*": _TIES,
    "test_arguments.py::test_what_is_wrong_is_refused[[]device]": _CPU_NAMED,
    "test_arguments.py::test_what_is_wrong_is_refused[[]kind of device]": _CPU_NAMED,
    "test_cell_states.py::test_to_another_dtype": _CPU_NAMED,
    "test_differences.py::test_an_array_follows_every_assignment": _SHARED,
    "test_differences.py::test_seeds_of_dropout_start_streams_on_the_cpu_and_are_reported_elsewhere": _MASKS,
    "test_forward_pass.py::test_what_changed_in_between_is_seen[[]an input, by NumPy]": _SHARED,
    "test_memory.py::test_a_tensor_copies_an_array_and_from_numpy_shares_it": _SHARED,
    "test_memory.py::test_asnumpy_shares_memory_with_the_tensor": _SHARED,
    "test_methods_said_anew.py::test_the_steps_of_a_model": "a Model sinks its data where there is an accelerator",
    "test_primitive_attributes.py::test_requests_that_cannot_act_are_refused_or_explained": _CPU_NAMED,
    "test_one_process.py::test_streams_of_the_cpu": _CPU_NAMED,
    "test_one_process.py::test_names_of_quantized_dtypes": _SHARED,
    "test_dropout_masks.py::test_masks_are_those_of_mindspore*": _MASKS,
    "test_dropout_masks.py::test_copies_begin_anew_and_do_not_share_the_stream": _MASKS,
    "test_dropout_masks.py::test_a_trial_leaves_no_mark_in_the_streams": _MASKS,
    "test_dropout_masks.py::test_states_go_through_json": _MASKS,
    "test_own_streams.py::test_a_primitive_that_a_call_creates_starts_anew_in_pynative_and_continues_in_a_graph*": _MASKS,
    "test_run_check.py::test_run_check_says_that_products_are_right": _CPU_NAMED,
    "test_sharing.py::test_a_tensor_of_a_buffer": _SHARED,
    "test_tensor_to.py::test_a_device_that_is_not_there": "there is a GPU",
    "test_torch_border.py::test_a_cell_and_its_recorded_forward_pass*": _TORCH,
    "test_torch_border.py::test_a_frozen_torch_module_passes_the_gradient_on*": _TORCH,
    "test_torch_border.py::test_a_torch_parameter_that_would_get_no_gradient_raises*": _TORCH,
    "test_torch_border.py::test_dlpack_cannot_carry_a_gradient*": "torch has no DLPack number for a device of Python",
    "test_torch_tensors.py::*": _TORCH,
    "test_cases.py::test_case[[]nn_more_losses:sampled_softmax*": _MASKS,
    "test_layers_by_hand.py::test_sampled_softmax*": _MASKS,
    "test_parameter_draws.py::test_an_accelerator_expects_as_many*": "it compares with the CPU's draws",
    "test_parameter_draws.py::test_gamma_holds_the_generators*": _MASKS,
    "test_parameter_draws.py::test_wrong_arguments_are_refused*": "the checks of the values of arguments are those of the CPU's draws",
    "test_half_precision.py::test_convolutions_with_gradients_run_in_float32*": "only convolutions on the CPU compute in float32",
    "test_half_precision.py::test_products_run_in_float32_where_the_cpu_has_no_instructions*":
        "it is about the CPU's instructions; products of float16 stay float16 on an accelerator",
}


def reason_for(name: str) -> str:
    """Return why a test does not run on the stand-in; an empty text where it does."""
    return next((reason for pattern, reason in SKIPPED.items() if fnmatchcase(name, f"*{pattern}")), "")
