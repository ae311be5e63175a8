"""`mindspore.common._stub_tensor`: results that are still being computed. Here every result is a Tensor at once."""


class StubTensor:
    """The class of results that are not computed yet, of which there are none: `isinstance(x, StubTensor)` is False."""


def is_stub_tensor(tensor: object) -> bool:
    """Whether `tensor` is still being computed: False."""
    return isinstance(tensor, StubTensor)
