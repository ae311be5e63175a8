"""Text: what 2.10 can't be asked (SentencePiece's library, where it errs itself), pipelines of text, and messages."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import mindspore.dataset.text as text
import numpy as np
import pytest
from mindspore.dataset.text.transforms import TextTensorOperation
from mindspore.dataset.text.utils import Vocab
from support.error_messages import without_mindspores_sentence

LINES = [
    "the quick brown fox jumps over the lazy dog", "I saw a girl with a telescope.", "hello world this is a test",
    "machine learning of language models", "the dog and the fox",
]


def lines(column: str = "text") -> ds.Dataset:
    return ds.NumpySlicesDataset(LINES * 20, [column], shuffle=False)


def test_a_pipeline_of_text() -> None:
    words = lines().map(text.WhitespaceTokenizer(), "text")
    vocab = words.build_vocab("text", (2, None), 12, ["<pad>", "<unk>"], True)
    assert isinstance(vocab, Vocab) and vocab.tokens_to_ids(["<pad>", "<unk>", "the", "a"]) == [0, 1, 2, 3]
    steps = [text.WhitespaceTokenizer(), text.Lookup(vocab, "<unk>"), ds.transforms.PadEnd([10], 0)]
    rows = list(lines().map(steps, "text").batch(5).create_tuple_iterator(output_numpy=True, num_epochs=1))
    assert rows[0][0].shape == (5, 10) and rows[0][0].dtype == np.int32 and rows[0][0][4].tolist()[5:] == [0] * 5
    offsets = lines().map(text.BasicTokenizer(with_offsets=True), "text", ["token", "start", "end"])
    assert [row.dtype for row in next(offsets.create_tuple_iterator(output_numpy=True, num_epochs=1))[1:]] == [np.uint32] * 2
    assert issubclass(text.Ngram, TextTensorOperation)


def test_where_2_10_errs_the_documents_hold() -> None:
    assert text.BasicTokenizer(True)("Hé [CLS] B [SEP] C").tolist() == ["he", "[CLS]", "b", "[SEP]", "c"]
    assert text.RegexReplace("a", "b")(np.array(["a", "ca"])).tolist() == ["b", "cb"]
    assert text.FilterWikipediaXML()("Rome\n\nR").item() == "rome r"
    vectors = text.Vectors()
    vectors._vectors, vectors._length = {"ok": np.ones(2, np.float32), "Ok": np.zeros(2, np.float32)}, 2
    assert text.ToVectors(vectors, lower_case_backup=True)("Ok").tolist() == [0, 0]
    words = np.array(["favoritez", "favorite"])
    pieces, starts, ends = text.WordpieceTokenizer(Vocab.from_list(["favor", "##ite"]), with_offsets=True)(words)
    assert pieces.tolist() == ["[UNK]", "favor", "##ite"] and (starts.tolist(), ends.tolist()) == ([0, 0, 5], [9, 5, 8])


def test_sentence_pieces(tmp_path: Path) -> None:
    pytest.importorskip("sentencepiece")
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(LINES * 20))
    vocab = text.SentencePieceVocab.from_file([str(corpus)], 45, 0.9995, text.SentencePieceModel.UNIGRAM, {})
    pieces = text.SentencePieceTokenizer(vocab, text.SPieceTokenizerOutType.STRING)
    assert "".join(pieces("the quick fox").tolist()) == "▁the▁quick▁fox"
    numbers = text.SentencePieceTokenizer(vocab, text.SPieceTokenizerOutType.INT)("the quick fox")
    assert numbers.dtype == np.int32 and len(numbers) == len(pieces("the quick fox")) and pieces("").shape == (0,)
    text.SentencePieceVocab.save_model(vocab, str(tmp_path), "m.model")
    read = text.SentencePieceTokenizer(str(tmp_path / "m.model"), text.SPieceTokenizerOutType.STRING)
    assert read("the quick fox").tolist() == pieces("the quick fox").tolist()
    pairs = lines().build_sentencepiece_vocab(["text"], 50, 0.9995, ds.SentencePieceModel.BPE, {})
    cut = text.SentencePieceTokenizer(pairs, text.SPieceTokenizerOutType.STRING)("the quick fox")
    assert cut.tolist() == "▁the ▁ q u i c k ▁ fox".split()  # as MindSpore 2.10 cuts it
    kind = ds.SentencePieceModel.UNIGRAM
    arguments = {"col_names": ["text"], "vocab_size": 45, "character_coverage": 0.99, "model_type": kind, "params": {}}
    for inputs in ({"vocab_size": 6000}, {"params": {"zz": "4"}}, {"col_names": ["zz"]}, {"vocab_size": 0}, {"character_coverage": 3.0}):
        with pytest.raises(RuntimeError):
            text.SentencePieceVocab.from_dataset(lines(), **{**arguments, **inputs})


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(ImportError) as caught:
        text.SentencePieceTokenizer(__file__, text.SPieceTokenizerOutType.STRING)
    assert str(caught.value).endswith('expected the library sentencepiece.\n\nhint: write pip install "torchspore[text]".')


@pytest.mark.parametrize("hostile", ["<" * 200_000, "&" * 200_000, "<a " * 100_000 + "&;" * 9])
def test_a_hostile_page_takes_no_longer_than_its_length(hostile: str) -> None:
    import time

    start = time.perf_counter()
    text.FilterWikipediaXML()(hostile)
    assert time.perf_counter() - start < 2


MESSAGES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "bytes": (
        lambda: text.WhitespaceTokenizer()(np.array(b"a")), RuntimeError,
        "WhitespaceTokenizer of |S1 []: expected text.\n\nhint: write text.to_str(...) for bytes.",
    ),
    "row": (
        lambda: text.WhitespaceTokenizer()(np.array(["a", "b"])), RuntimeError,
        "WhitespaceTokenizer of text [2]: expected one text.",
    ),
    "unknown": (
        lambda: text.Lookup(Vocab.from_list(["a"]))("b"), RuntimeError,
        "Lookup of 'b': expected a word of the Vocab.\n\nhint: write Lookup(vocab, unknown_token=...).",
    ),
    "twice": (lambda: Vocab.from_list(["a", "a"]), ValueError, "Vocab.from_list(word_list=...): expected each word once, got 'a' twice."),
    "number": (
        lambda: text.ToNumber(ms.int8)(np.array(["300"])), RuntimeError,
        "ToNumber(int8) of '300': expected a number from -128 to 127.",
    ),
    "pad": (
        lambda: text.Ngram(2, ("a",)), ValueError,
        "Ngram(left_pad=('a',)): expected (word, how many).\n\nhint: write (\"_\", 1).",
    ),
    "encoding": (
        lambda: text.to_bytes(np.array(["a"]), "zz"), ValueError,
        "to_bytes(encoding='zz'): expected an encoding that Python supports.\n\nhint: write 'utf8'.",
    ),
    "jieba": (
        lambda: text.JiebaTokenizer("no", "no"), ValueError,
        "JiebaTokenizer(hmm_path='no'): expected an existing file.\n\n"
        "hint: the files are in the folder dict of https://github.com/yanyiwu/cppjieba.",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages(name: str) -> None:
    call, kind, expected = MESSAGES[name]
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).partition(": ")[0].endswith(expected.partition(": ")[0])
    assert without_mindspores_sentence(str(caught.value)).endswith(expected)
