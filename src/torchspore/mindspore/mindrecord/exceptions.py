"""The errors of `mindspore.mindrecord`, by MindSpore's names; each also is the built-in exception of its kind."""
from __future__ import annotations

from torchspore.errors import DataMissing, TorchsporeError


class MindRecordException(TorchsporeError):
    """Something is wrong with a MindRecord file or with what was to be written into one."""


class ParamTypeError(MindRecordException, TypeError):
    """An argument of a reader or writer has a type that it does not take."""


class ParamValueError(MindRecordException, ValueError):
    """An argument of a reader or writer has a value that it does not take."""


class MRMInvalidSchemaError(MindRecordException, ValueError):
    """A schema is none: a field's name, type or shape is not as the format has it."""


class MRMAddSchemaError(MindRecordException, RuntimeError):
    """A writer has a schema already."""


class MRMDefineIndexError(MindRecordException, ValueError):
    """A field was named as an index that the schema has not, or that holds an array or bytes."""


class MRMFetchCandidateFieldsError(MindRecordException, RuntimeError):
    """The file has no index."""


class MRMReadCategoryInfoError(MindRecordException, RuntimeError):
    """No field was chosen to page by."""


class MRMFetchDataError(MindRecordException, ValueError):
    """A page was asked for that is none."""


class MRMOpenError(MindRecordException, DataMissing):
    """A MindRecord file or its index is not there; RuntimeError as in MindSpore, FileNotFoundError as in Python."""


_UNUSED = """
DbConnectionError MRMAddIndexError MRMBuildSchemaError MRMCloseError MRMCommitError MRMDefineBlobError MRMDefineCategoryError
MRMFinishError MRMGenerateIndexError MRMGetMetaError MRMIndexGeneratorError MRMInitSegmentError MRMInvalidHeaderSizeError
MRMInvalidPageSizeError MRMLaunchError MRMOpenForAppendError MRMSetHeaderError MRMUnsupportedSchemaError MRMValidateDataError
MRMWriteDatasetError ParamMissError PathNotExistsError UnknownError
""".split()
for _name in _UNUSED:  # nothing raises these, in MindSpore 2.10 neither; an `except` clause that lists them has to run
    globals()[_name] = type(_name, (MindRecordException, RuntimeError), {
        "__doc__": "MindSpore's name of an error; no call raises it.", "__module__": __name__,
    })

__all__ = [
    "MRMAddSchemaError", "MRMDefineIndexError", "MRMFetchCandidateFieldsError", "MRMFetchDataError", "MRMInvalidSchemaError",
    "MRMOpenError", "MRMReadCategoryInfoError", "MindRecordException", "ParamTypeError", "ParamValueError", *_UNUSED,
]
