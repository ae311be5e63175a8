"""The errors of `mindspore.mindrecord`, with MindSpore's names; each is also the built-in exception of its kind."""
from __future__ import annotations

from torchspore.errors import DataMissing, TorchsporeError


class MindRecordException(TorchsporeError):
    """A MindRecord file, or data for one, is invalid."""


class ParamTypeError(MindRecordException, TypeError):
    """An argument of a reader or writer has an invalid type."""


class ParamValueError(MindRecordException, ValueError):
    """An argument of a reader or writer has an invalid value."""


class MRMInvalidSchemaError(MindRecordException, ValueError):
    """A schema is invalid: the format does not allow a field's name, type or shape."""


class MRMAddSchemaError(MindRecordException, RuntimeError):
    """A writer has a schema already."""


class MRMDefineIndexError(MindRecordException, ValueError):
    """An index field is not in the schema, or contains an array or bytes."""


class MRMFetchCandidateFieldsError(MindRecordException, RuntimeError):
    """The file has no index."""


class MRMReadCategoryInfoError(MindRecordException, RuntimeError):
    """No field was selected for paging."""


class MRMFetchDataError(MindRecordException, ValueError):
    """The requested page does not exist."""


class MRMOpenError(MindRecordException, DataMissing):
    """A MindRecord file or its index is missing; RuntimeError as in MindSpore, FileNotFoundError as in Python."""


_UNUSED = """
DbConnectionError MRMAddIndexError MRMBuildSchemaError MRMCloseError MRMCommitError MRMDefineBlobError MRMDefineCategoryError
MRMFinishError MRMGenerateIndexError MRMGetMetaError MRMIndexGeneratorError MRMInitSegmentError MRMInvalidHeaderSizeError
MRMInvalidPageSizeError MRMLaunchError MRMOpenForAppendError MRMSetHeaderError MRMUnsupportedSchemaError MRMValidateDataError
MRMWriteDatasetError ParamMissError PathNotExistsError UnknownError
""".split()
for _name in _UNUSED:  # as in MindSpore 2.10, nothing raises these; they exist for `except` clauses that list them
    globals()[_name] = type(_name, (MindRecordException, RuntimeError), {
        "__doc__": "MindSpore's name of an error; no call raises it.", "__module__": __name__,
    })

__all__ = [
    "MRMAddSchemaError", "MRMDefineIndexError", "MRMFetchCandidateFieldsError", "MRMFetchDataError", "MRMInvalidSchemaError",
    "MRMOpenError", "MRMReadCategoryInfoError", "MindRecordException", "ParamTypeError", "ParamValueError", *_UNUSED,
]
