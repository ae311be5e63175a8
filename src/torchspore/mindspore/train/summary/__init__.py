"""`mindspore.train.summary`: records of a training for TensorBoard."""
from torchspore.mindspore.train.summary.summary_record import SummaryRecord
from torchspore.public_names import missing

__all__ = ["SummaryRecord"]
__getattr__ = missing(__name__)
