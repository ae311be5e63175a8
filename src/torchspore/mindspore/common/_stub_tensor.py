"""`mindspore.common._stub_tensor`: results that are still being computed. Here every result is already a Tensor."""


class StubTensor:
    """The class of results that are not computed yet. There are none: `isinstance(x, StubTensor)` is False."""


def is_stub_tensor(tensor: object) -> bool:
    """Return whether `tensor` is still being computed: False."""
    return isinstance(tensor, StubTensor)
