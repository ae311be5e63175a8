"""SentencePiece: training of vocabularies and tokenization by the library `sentencepiece`, which is imported on use."""
from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.validator_helpers import check_type
from torchspore.mindspore.dataset.text.choices import SentencePieceModel, SPieceTokenizerOutType
from torchspore.mindspore.dataset.text.operation import TextTensorOperation, check_text


def _library(call: str) -> Any:
    try:
        import sentencepiece
    except ImportError:
        hint = 'write pip install "torchspore[text]"'
        raise ImportError(message(call, "the library sentencepiece", hint=hint)) from None
    return sentencepiece


class SentencePieceVocab:
    """A SentencePiece model, created by `from_dataset` or `from_file`."""

    def __init__(self) -> None:
        self._model = b""

    @classmethod
    def from_dataset(
        cls, dataset: Any, col_names: Any, vocab_size: Any, character_coverage: Any, model_type: Any, params: Any
    ) -> SentencePieceVocab:
        """Trains a model of `vocab_size` pieces on columns of text; `params` are the library's own.

        Raises RuntimeError if the library refuses the settings.
        """
        call = "SentencePieceVocab.from_dataset"
        check_type(call, "col_names", col_names, (list, tuple), "a list of column names")
        _check_training(call, vocab_size, character_coverage, model_type, params)
        columns_of_dataset = dataset.get_col_names()
        for name in col_names:
            if name not in columns_of_dataset:
                raise RuntimeError(message(f"{call}(col_names={short(name)})", f"a column of the dataset, which are {columns_of_dataset}"))
        return cls()._train(call, {"sentence_iterator": _sentences(dataset, col_names)}, vocab_size, character_coverage, model_type, params)

    @classmethod
    def from_file(cls, file_path: Any, vocab_size: Any, character_coverage: Any, model_type: Any, params: Any) -> SentencePieceVocab:
        """Trains a model of `vocab_size` pieces on the lines of text files. Raises RuntimeError for a file that is missing."""
        call = "SentencePieceVocab.from_file"
        check_type(call, "file_path", file_path, list, "a list of paths")
        for path in file_path:
            check_type(call, "file_path", path, str, "a list of paths")
        _check_training(call, vocab_size, character_coverage, model_type, params)
        for path in file_path:
            if not Path(path).is_file():
                raise RuntimeError(message(f"{call}({path!r})", "an existing text file"))
        return cls()._train(call, {"input": file_path}, vocab_size, character_coverage, model_type, params)

    @classmethod
    def save_model(cls, vocab: Any, path: Any, filename: Any) -> None:
        """Writes a model to `filename` in the folder `path`. Raises RuntimeError for a folder that is missing."""
        call = "SentencePieceVocab.save_model"
        check_type(call, "vocab", vocab, SentencePieceVocab, "a SentencePieceVocab")
        check_type(call, "path", path, str, "a folder")
        check_type(call, "filename", filename, str, "a file's name")
        if not Path(path).is_dir():
            raise RuntimeError(message(f"{call}(path={path!r})", "an existing folder"))
        from torchspore.base.files import write_atomically

        write_atomically(Path(path) / filename, vocab._model)

    def _train(
        self, call: str, source: dict[str, Any], size: int, coverage: float, kind: Any, params: dict[str, Any]
    ) -> SentencePieceVocab:
        library = _library(call)
        model_file = io.BytesIO()
        name = kind.name.lower() if isinstance(kind, SentencePieceModel) else kind.lower()
        settings = {"vocab_size": size, "character_coverage": coverage, "model_type": name, "minloglevel": 2, **params}
        try:
            library.SentencePieceTrainer.train(model_writer=model_file, **source, **settings)
        except (RuntimeError, OSError, ValueError, TypeError) as error:
            raise RuntimeError(message(call, f"settings that sentencepiece takes ({str(error).strip()})")) from None
        self._model = model_file.getvalue()
        return self


def _sentences(dataset: Any, names: Any) -> Iterator[str]:
    for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True):
        for name in names or row:
            if row[name].dtype.kind != "U":
                raise RuntimeError(message(f"SentencePieceVocab: column {name!r} of {row[name].dtype}", "text"))
            yield from row[name].reshape(-1).tolist()


def _check_training(call: str, vocab_size: Any, character_coverage: Any, model_type: Any, params: Any) -> None:
    check_type(call, "vocab_size", vocab_size, int, "an int")
    check_type(call, "character_coverage", character_coverage, float, "a float")
    check_type(call, "model_type", model_type, (str, SentencePieceModel), "a member of SentencePieceModel")
    check_type(call, "params", params, dict, "a dict of sentencepiece's own settings")
    if vocab_size <= 0:
        raise RuntimeError(message(f"{call}(vocab_size={vocab_size})", "an int from 1 on"))
    if not 0.98 <= character_coverage <= 1.0:
        raise RuntimeError(message(f"{call}(character_coverage={character_coverage})", "a number from 0.98 to 1"))


class SentencePieceTokenizer(TextTensorOperation):
    """Splits a text into the pieces of a model (a SentencePieceVocab, or a model file's path): as text, or as ids (int32)."""

    def __init__(self, mode: Any, out_type: Any) -> None:
        check_type("SentencePieceTokenizer", "mode", mode, (str, SentencePieceVocab), "a SentencePieceVocab or the path of a model file")
        check_type("SentencePieceTokenizer", "out_type", out_type, SPieceTokenizerOutType, "a member of SPieceTokenizerOutType")
        call = f"SentencePieceTokenizer({short(mode) if isinstance(mode, str) else 'vocab'})"
        if isinstance(mode, str) and not Path(mode).is_file():
            raise RuntimeError(message(call, "an existing model file"))
        self.out_type = out_type
        self._model = mode._model if isinstance(mode, SentencePieceVocab) else Path(mode).read_bytes()
        try:
            self._processor = _library(call).SentencePieceProcessor(model_proto=self._model)
        except (RuntimeError, OSError):
            raise RuntimeError(message(call, "a model of SentencePiece")) from None

    def _apply(self, value: np.ndarray) -> np.ndarray:
        check_text("SentencePieceTokenizer", value, (0,))
        if self.out_type is SPieceTokenizerOutType.STRING:
            return np.array(self._processor.encode(value.item(), out_type=str), dtype=np.str_)
        return np.array(self._processor.encode(value.item(), out_type=int), np.int32)
