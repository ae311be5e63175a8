"""Text transforms, vocabularies and word vectors: the very words and numbers, and what they refuse."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import mindspore as ms
import mindspore.dataset as ds
import mindspore.dataset.text as text
import numpy as np
from parity.case import case, raised

TEXT = (
    "Welcome  to Beijing!\t北京欢迎您 Ünïcode ½ ＡＢＣ don't [CLS] [unused1] [MASK]x ﬁ \u00a0e\u0301 \U0001f600 12,5 Привет\u3000мир.\n"
)
ODD = "a\x01b\u200bc\x0bd\ufeffe\x85f\u00adg$h€i+j~k\ufffdl\u2028m"
WORDS = "my favor ##ite book is love dur ##ing the cholera era what 我 最 喜 欢 的 书 是 霍 乱 时 期 爱 情".split()
FORM = text.NormalizeForm


@cache
def files():
    folder = Path(tempfile.mkdtemp())
    contents = {
        "words.txt": "a,1\nb,2\n\nc\nd,3\n", "twice.txt": "x\nx\n", "spaces.txt": "x\r\ny z \n  w\n", "empty.vec": "",
        "head.vec": "3 4\nok 1 2 3 4\nis 0.5 0.5 0.5 0.5\nOK2 1 1 1 1\n", "plain.vec": "ok 1 2 3 4\nis 0.5 0.5 0.5 0.5\nOk 9 9 9 9\n",
        "uneven.vec": "ok 1 2\nis 1\n", "letter.vec": "ok 1 x\n", "again.vec": "ok 1 2\nok 3 4\n",
        "glove.6B.test.txt": "ok 1 2 3 4\nis 0.5 0.5 0.5 0.5\n",
        "grams.txt": "1gram-o 1 2\n2gram-ok 3 4\n2gram-#BEGIN#o 8 9\n3gram-is# 5 6\n4gram-abcd 1 1\n3gram-ab#END# 7 7\n",
        "mp.txt": "我 100 r\n来到 50 v\n北京 80 ns\n清华 30 nz\n清华大学 20 nt\n大学 60 n\n华大 5 n\n你好 40 x\n世界 60 n\n",
        "hmm.txt": hmm(), "own.txt": "天气 3\nbad\n\nx y z\n",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content.encode())
    return folder


def hmm():
    letters = "今天气真好我来到北京清华大学你世界杭研"
    emits = [",".join(f"{letter}:{-5.0 - index * step % 7 / 2}" for index, letter in enumerate(letters)) for step in (1, 2, 3, 4)]
    start = "#start\n-0.26 -3.14e+100 -3.14e+100 -1.46\n#follows\n-3.14e+100 -0.51 -0.92 -3.14e+100\n-0.59 -3.14e+100 -3.14e+100 -0.81\n"
    return start + "-3.14e+100 -0.33 -1.26 -3.14e+100\n-0.72 -3.14e+100 -3.14e+100 -0.67\n" + "\n".join(emits) + "\n"


def path(name):
    return str(files() / name)


def vocab():
    return text.Vocab.from_list(WORDS)


def rows(words="a b c b a a d é"):
    return ds.NumpySlicesDataset(words.split(), ["t"], shuffle=False)


def jieba(mode, offsets=False):
    return text.JiebaTokenizer(path("hmm.txt"), path("mp.txt"), mode, offsets)


CHINESE = "我来到北京清华大学, hello world 12.5你好今天天气真好杭研。\nx"


def jieba_grown(mode):
    tokenizer = jieba(mode)
    tokenizer.add_word("杭研", 10)
    first = tokenizer("我来到北京清华大学杭研")
    tokenizer.add_word("京清华")
    tokenizer.add_dict({"学杭": 1000000})
    tokenizer.add_dict(path("own.txt"))
    return first, tokenizer("我来到北京清华大学杭研天气")


def arr(*words):
    return np.array(words)


def vectors(kind, name, words, **options):
    return text.ToVectors(getattr(text, kind).from_file(path(name)), **options)(words)


ROW = arr(*"a b c d".split())
RESULTS = {
    "whitespace": lambda: text.WhitespaceTokenizer(True)(TEXT),
    "whitespace plain": lambda: text.WhitespaceTokenizer()(TEXT),
    "whitespace of nothing": lambda: text.WhitespaceTokenizer(True)(""),
    "whitespace odd": lambda: text.WhitespaceTokenizer()(ODD),
    "characters": lambda: text.UnicodeCharTokenizer(True)(TEXT),
    "characters of nothing": lambda: text.UnicodeCharTokenizer()(""),
    "scripts": lambda: text.UnicodeScriptTokenizer(with_offsets=True)(TEXT),
    "scripts and spaces": lambda: text.UnicodeScriptTokenizer(True, True)(TEXT),
    "scripts odd": lambda: text.UnicodeScriptTokenizer(True)(ODD),
    "scripts many": lambda: text.UnicodeScriptTokenizer()("aαбאعहกあア한字\u0300გᏣ𐌰ᚠ܀\u0e3f\U000e0fff१"),
    "basic": lambda: text.BasicTokenizer(with_offsets=True)(TEXT),
    "basic odd": lambda: text.BasicTokenizer()(ODD),
    "basic keeps spaces": lambda: text.BasicTokenizer(keep_whitespace=True, with_offsets=True)(TEXT),
    "basic NFKD": lambda: text.BasicTokenizer(False, False, FORM.NFKD, False)(TEXT),
    "basic lower": lambda: text.BasicTokenizer(True, preserve_unused_token=False)("Hé [CLS] B ß İ ǅ Σς ½"),
    "basic lower, special last": lambda: text.BasicTokenizer(True, with_offsets=True)("Hé Ünï [CLS]"),
    "basic lower, spaces": lambda: text.BasicTokenizer(True, True, preserve_unused_token=False)("Hé [CLS]\t\n  B"),
    "basic of nothing": lambda: text.BasicTokenizer()(""),
    "regex": lambda: text.RegexTokenizer("\\s+", "\\s+", True)(TEXT),
    "regex plain": lambda: text.RegexTokenizer("\\s+")(" a b "),
    "regex signs": lambda: text.RegexTokenizer("[\\p{P}]", "[\\p{P}]", True)("a,b!北。"),
    "regex none": lambda: text.RegexTokenizer("zz")("a,b"),
    "regex keeps a part": lambda: text.RegexTokenizer("ab+", "ab")("xabby ab"),
    "regex spaces": lambda: text.RegexTokenizer("\\s")(ODD),
    "case": lambda: text.CaseFold()(TEXT),
    "case odd": lambda: text.CaseFold()("a\u00adb\u200bc İ ǅ Σς ß \u0345 ﬃ Å \u1e9e"),
    "case of two axes": lambda: text.CaseFold()(np.array([["A", "Bß"], ["C", "D"]])),
    **{f"normal {form.name}": lambda form=form: text.NormalizeUTF8(form)("ﬁ é e\u0301 Å ½ 한") for form in FORM},
    "replace": lambda: text.RegexReplace("\\s+", "_")("a  b c"),
    "replace first": lambda: text.RegexReplace("\\s+", "_", False)("a  b c"),
    "replace groups": lambda: text.RegexReplace("(\\w)(\\d)", "$2$1")("a1 b2"),
    "replace name": lambda: text.RegexReplace("(?<x>a)", "${x}${x}")("a"),
    "replace script": lambda: text.RegexReplace("[\\p{Han}]", "<\\$0>")("a北b"),
    "replace escapes": lambda: text.RegexReplace("a", "\\n\\\\x")("a"),
    "replace empty": lambda: text.RegexReplace("x*", "-")("ab"),
    "replace sets": lambda: text.RegexReplace("[[a-z]&&[^b]]", "-")("abc"),
    "replace any case": lambda: text.RegexReplace("(?i)A", "b")("caca"),
    "wikipedia": lambda: text.FilterWikipediaXML()("[[Image:a.jpg|thumb|20px|cap]] <b> &amp; &lt;i&gt; &nbsp;{{cut}} 1990s http://x.y"),
    "wikipedia refers": lambda: text.FilterWikipediaXML()("x #REDIRECT [[y]]"),
    "wikipedia one line": lambda: text.FilterWikipediaXML()("A <b> c > d"),
    "ngram": lambda: text.Ngram([3, 2, 1], ("_", 2), ("|", 1), "-")(ROW),
    "ngram short": lambda: text.Ngram([3])(ROW[:2]),
    "ngram int": lambda: text.Ngram(2)(ROW),
    "ngram wide pad": lambda: text.Ngram([2], ("_", 9), ("|", 9))(ROW),
    **{
        f"number {kind}": lambda kind=kind: text.ToNumber(getattr(ms, kind))(arr("1", "12"))
        for kind in "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
    },
    "number and letters": lambda: text.ToNumber(ms.int8)(arr("1.7", " 3", "4x", "0x10", "1e3", "+3")),
    "number with exponent": lambda: text.ToNumber(ms.float32)(arr("1e3", "-.5", "5.", " 2abc", "nan")),
    "number hexadecimal": lambda: text.ToNumber(ms.float64)(arr("0x1p3")),
    "number of two axes": lambda: text.ToNumber(ms.int64)(np.array([["1", "9223372036854775807"]])),
    "number alone": lambda: text.ToNumber(ms.int64)("-5"),
    "token first": lambda: text.AddToken("T")(["a", "b"]),
    "token last": lambda: text.AddToken("TTT", False)(arr("a", "b")),
    "token of rows": lambda: text.AddToken("T", False)(np.array([["a", "b"], ["c", "d"]])),
    "truncate": lambda: text.Truncate(2)(ROW),
    "truncate numbers": lambda: text.Truncate(2)(np.array([1, 2, 3], np.int16)),
    "truncate rows": lambda: text.Truncate(1)(np.array([[1, 2, 3], [4, 5, 6]])),
    "truncate longer": lambda: text.Truncate(9)(np.array([1, 2, 3])),
    "pair": lambda: text.TruncateSequencePair(4)(ROW[:3], ROW[1:]),
    "pair odd": lambda: text.TruncateSequencePair(5)(np.arange(4), np.arange(4)),
    "pair first longer": lambda: text.TruncateSequencePair(4)(np.arange(6), np.arange(3)),
    "pair second longer": lambda: text.TruncateSequencePair(3)(np.array([1]), np.array([4, 5, 6, 7])),
    "pair to nothing": lambda: text.TruncateSequencePair(0)(np.array([1]), np.array([4, 5, 6, 7])),
    "pair of two kinds": lambda: text.TruncateSequencePair(3)(ROW[:2], np.array([4, 5, 6, 7])),
    "window": lambda: text.SlidingWindow(3)(np.array([1, 2, 3, 4, 5])),
    "window of text": lambda: text.SlidingWindow(3, -1)(ROW),
    "window longer": lambda: text.SlidingWindow(9, 0)(np.array([1, 2, 3])),
    "lookup": lambda: text.Lookup(vocab())(["my", "is"]),
    "lookup one": lambda: text.Lookup(vocab())("is"),
    "lookup unknown": lambda: text.Lookup(vocab(), "is")(["zz", "my"]),
    "lookup float": lambda: text.Lookup(vocab(), data_type=ms.float32)(["is"]),
    "lookup uint16": lambda: text.Lookup(vocab(), data_type=ms.uint16)(np.array([["my"], ["is"]])),
    "pieces": lambda: text.WordpieceTokenizer(vocab(), with_offsets=True)("favorite"),
    "pieces of words": lambda: text.WordpieceTokenizer(vocab())(np.array("my favorite book during what! zz 我".split())),
    "pieces unknown stay": lambda: text.WordpieceTokenizer(vocab(), unknown_token="")(np.array("my favoritezz zz".split())),
    "pieces of long words": lambda: text.WordpieceTokenizer(vocab(), max_bytes_per_token=3)(np.array("my favorite".split())),
    "pieces without mark": lambda: text.WordpieceTokenizer(vocab(), "")("mybook"),
    "pieces of nothing": lambda: text.WordpieceTokenizer(vocab())(""),
    "bert": lambda: text.BertTokenizer(vocab(), with_offsets=True)("my favorite book is LOVE during the era, what [UNK] 我最爱的书 [CLS]"),
    "bert lower": lambda: text.BertTokenizer(vocab(), lower_case=True, keep_whitespace=True, unknown_token="", with_offsets=True)(
        "My favorite  LÖVE, 我最"
    ),
    "bert special": lambda: text.BertTokenizer(vocab())("zz [PAD] my[PAD]"),
    "bert of nothing": lambda: text.BertTokenizer(vocab())(""),
    "python": lambda: text.PythonTokenizer(lambda line: line.split())(np.array("a b")),
    "python row": lambda: text.PythonTokenizer(lambda line: line.split())(np.array(["a b"])),
    "bytes": lambda: text.to_bytes(arr("a", "北")),
    "bytes latin": lambda: text.to_bytes(arr("é"), "latin1"),
    "str": lambda: text.to_str(np.array([b"a", "北".encode()])),
    "vectors": lambda: vectors("Vectors", "plain.vec", ["ok", "is", "zz"]),
    "vectors head": lambda: vectors("Vectors", "head.vec", "ok"),
    "vectors unknown": lambda: vectors("Vectors", "plain.vec", "zz", unk_init=[9, 9, 9, 9.5]),
    "vectors lower": lambda: vectors("Vectors", "plain.vec", ["IS", "OK"], lower_case_backup=True),
    "vectors letter": lambda: vectors("Vectors", "letter.vec", "ok"),
    "vectors twice": lambda: vectors("Vectors", "again.vec", "ok"),
    "vectors some": lambda: text.ToVectors(text.Vectors.from_file(path("plain.vec"), 1))(["ok", "is"]),
    "vectors all": lambda: text.ToVectors(text.Vectors.from_file(path("plain.vec"), 0))(["ok", "is"]),
    "fasttext": lambda: vectors("FastText", "head.vec", ["OK2", "is"]),
    "glove": lambda: vectors("GloVe", "glove.6B.test.txt", ["ok", "is"]),
    "grams": lambda: vectors("CharNGram", "grams.txt", ["o", "k", "ok", "okis", "abcd", "ab", ""], unk_init=[-1, -1]),
    **{f"jieba {mode.name}": lambda mode=mode: jieba(mode, True)(CHINESE) for mode in text.JiebaMode},
    **{f"jieba grown {mode.name}": lambda mode=mode: jieba_grown(mode) for mode in text.JiebaMode},
    "jieba of nothing": lambda: jieba(text.JiebaMode.MIX)(""),
}


@case(over=list(RESULTS))
def result(name):
    output = RESULTS[name]()
    return {str(number): printed for number, printed in enumerate(output if isinstance(output, tuple) else (output,))}


VOCABS = {
    "list": lambda: text.Vocab.from_list(WORDS),
    "list special": lambda: text.Vocab.from_list(["a", "b"], ["<p>"]),
    "list special last": lambda: text.Vocab.from_list(["a", "b"], ["<p>"], False),
    "nothing": lambda: text.Vocab.from_list([]),
    "dict": lambda: text.Vocab.from_dict({"a": 3, "b": 7}),
    "dict same": lambda: text.Vocab.from_dict({"a": 1, "b": 1}),
    "file": lambda: text.Vocab.from_file(path("words.txt")),
    "file cut": lambda: text.Vocab.from_file(path("words.txt"), ","),
    "file short": lambda: text.Vocab.from_file(path("words.txt"), ",", 2),
    "file special": lambda: text.Vocab.from_file(path("words.txt"), ",", 3, ["<p>"], False),
    "file spaces": lambda: text.Vocab.from_file(path("spaces.txt")),
    "dataset": lambda: text.Vocab.from_dataset(rows()),
    "dataset column": lambda: text.Vocab.from_dataset(rows(), "t"),
    "dataset range": lambda: text.Vocab.from_dataset(rows(), ["t"], (2, 3)),
    "dataset at most": lambda: text.Vocab.from_dataset(rows(), ["t"], (None, 2)),
    "dataset at least": lambda: text.Vocab.from_dataset(rows(), ["t"], (2, None)),
    "dataset top": lambda: text.Vocab.from_dataset(rows(), ["t"], None, 2, ["<p>"]),
    "dataset special last": lambda: text.Vocab.from_dataset(rows(), ["t"], None, 99, ["<p>"], False),
}


@case(over=list(VOCABS))
def vocabulary(name):
    return {"ids": VOCABS[name]().vocab()}


@case()
def looking_up():
    words = vocab()
    return {
        "ids": [words.tokens_to_ids("my"), words.tokens_to_ids(["my", "zz"]), words.tokens_to_ids(arr("my", "is")),
                words.tokens_to_ids([])],
        "words": [words.ids_to_tokens(3), words.ids_to_tokens([3, 99]), words.ids_to_tokens(np.array([3, 4]))],
        "one": words.tokens_to_ids(np.array("my")),
    }


@case()
def choices():
    kinds = (text.JiebaMode, text.NormalizeForm, text.SentencePieceModel, text.SPieceTokenizerLoadType, text.SPieceTokenizerOutType)
    return {kind.__name__: {member.name: int(member) for member in kind} for kind in (*kinds, ds.SentencePieceModel)}


REFUSED = {
    "a row": lambda: text.WhitespaceTokenizer()(ROW),
    "a number": lambda: text.WhitespaceTokenizer()(3),
    "bytes": lambda: text.WhitespaceTokenizer()(np.array(b"a b")),
    "two columns": lambda: text.CaseFold()("a", "b"),
    "case of numbers": lambda: text.CaseFold()(np.array([1])),
    "offsets": lambda: text.WhitespaceTokenizer(3),
    "lower": lambda: text.BasicTokenizer(3),
    "form": lambda: text.BasicTokenizer(False, False, 3),
    "normal form": lambda: text.NormalizeUTF8(3),
    "spaces": lambda: text.UnicodeScriptTokenizer(3),
    "pattern": lambda: text.RegexTokenizer(3),
    "pattern kept": lambda: text.RegexTokenizer("a", 3),
    "pattern open": lambda: text.RegexTokenizer("(")("a"),
    "replace open": lambda: text.RegexReplace("(", "_")("a"),
    "replace group": lambda: text.RegexReplace("(a)", "$2")("a"),
    "replace dollar": lambda: text.RegexReplace("a", "$")("a"),
    "replace number": lambda: text.RegexReplace(3, "b"),
    "ngram 0": lambda: text.Ngram([0]),
    "ngram none": lambda: text.Ngram([]),
    "ngram bool": lambda: text.Ngram([True]),
    "ngram pad": lambda: text.Ngram([2], ("a",)),
    "ngram pad below 0": lambda: text.Ngram([2], ("a", -1)),
    "ngram separator": lambda: text.Ngram([1], separator=3),
    "ngram of one": lambda: text.Ngram(2)(np.array("a")),
    "number bool": lambda: text.ToNumber(ms.bool_),
    "number NumPy": lambda: text.ToNumber(np.int32),
    "number text": lambda: text.ToNumber(ms.string),
    "number sign": lambda: text.ToNumber(ms.uint8)(arr("-1")),
    "number large": lambda: text.ToNumber(ms.int8)(arr("1000")),
    "number word": lambda: text.ToNumber(ms.float32)(arr("x")),
    "number nothing": lambda: text.ToNumber(ms.int32)(arr("")),
    "number infinite": lambda: text.ToNumber(ms.float64)(arr("inf")),
    "number large float": lambda: text.ToNumber(ms.float16)(arr("1e6")),
    "number small": lambda: text.ToNumber(ms.float64)(arr("1e-400")),
    "number of numbers": lambda: text.ToNumber(ms.float32)(np.array([1])),
    "token number": lambda: text.AddToken(3),
    "token of one": lambda: text.AddToken("T")("a"),
    "token of numbers": lambda: text.AddToken("T")(np.array([1])),
    "truncate 0": lambda: text.Truncate(0),
    "truncate one": lambda: text.Truncate(1)(np.array(1)),
    "truncate three axes": lambda: text.Truncate(1)(np.zeros((2, 2, 2))),
    "pair one": lambda: text.TruncateSequencePair(3)(np.array([1])),
    "pair of rows": lambda: text.TruncateSequencePair(3)(np.array([[1]]), np.array([4])),
    "window 0": lambda: text.SlidingWindow(0),
    "window axis": lambda: text.SlidingWindow(3, 1)(np.array([1, 2, 3])),
    "window of rows": lambda: text.SlidingWindow(1, 0)(np.array([[1, 2, 3]])),
    "lookup unknown": lambda: text.Lookup(vocab())("zz"),
    "lookup unknown token": lambda: text.Lookup(vocab(), "zz")("my"),
    "lookup no vocab": lambda: text.Lookup("a"),
    "lookup token": lambda: text.Lookup(vocab(), 3),
    "lookup dtype": lambda: text.Lookup(vocab(), data_type=np.int32),
    "lookup text dtype": lambda: text.Lookup(vocab(), data_type=ms.string)("my"),
    "lookup number": lambda: text.Lookup(vocab())(3),
    "pieces number": lambda: text.WordpieceTokenizer(vocab())(3),
    "pieces rows": lambda: text.WordpieceTokenizer(vocab())(np.array([["my"]])),
    "pieces below 0": lambda: text.WordpieceTokenizer(vocab(), max_bytes_per_token=-1),
    "pieces mark": lambda: text.WordpieceTokenizer(vocab(), 3),
    "pieces vocab": lambda: text.WordpieceTokenizer(3),
    "bert row": lambda: text.BertTokenizer(vocab())(arr("my", "is")),
    "python text": lambda: text.PythonTokenizer(str.split)("a b"),
    "python number": lambda: text.PythonTokenizer(3),
    "bytes of list": lambda: text.to_bytes(["a"]),
    "bytes of numbers": lambda: text.to_bytes(np.array([1])),
    "str of str": lambda: text.to_str(arr("a")),
    "vocab twice": lambda: text.Vocab.from_list(["a", "a"]),
    "vocab tuple": lambda: text.Vocab.from_list(("a",)),
    "vocab number": lambda: text.Vocab.from_list([3]),
    "vocab special word": lambda: text.Vocab.from_list(["a"], ["a"]),
    "vocab below 0": lambda: text.Vocab.from_dict({"a": -3}),
    "vocab dict text": lambda: text.Vocab.from_dict({"a": "b"}),
    "vocab dict key": lambda: text.Vocab.from_dict({1: 1}),
    "vocab dict list": lambda: text.Vocab.from_dict([1]),
    "vocab no file": lambda: text.Vocab.from_file("zz"),
    "vocab file twice": lambda: text.Vocab.from_file(path("twice.txt")),
    "vocab file special": lambda: text.Vocab.from_file(path("words.txt"), ",", 3, ["a"]),
    "vocab size": lambda: text.Vocab.from_file(path("words.txt"), vocab_size=0),
    "vocab path": lambda: text.Vocab.from_file(3),
    "vocab column": lambda: text.Vocab.from_dataset(rows(), ["zz"]),
    "vocab range": lambda: text.Vocab.from_dataset(rows(), ["t"], (3, 2)),
    "vocab range list": lambda: text.Vocab.from_dataset(rows(), ["t"], [1, 2]),
    "vocab range text": lambda: text.Vocab.from_dataset(rows(), ["t"], ("a", 2)),
    "vocab top": lambda: text.Vocab.from_dataset(rows(), ["t"], None, 0),
    "vocab of dataset, special": lambda: text.Vocab.from_dataset(rows(), ["t"], None, 2, ["a"]),
    "vocab of numbers": lambda: text.Vocab.from_dataset(ds.NumpySlicesDataset([1, 2], ["t"])),
    "ids below 0": lambda: vocab().ids_to_tokens([-1]),
    "ids bool": lambda: vocab().ids_to_tokens(True),
    "ids text": lambda: vocab().ids_to_tokens("a"),
    "ids floats": lambda: vocab().ids_to_tokens(np.array([1.0])),
    "ids rows": lambda: vocab().ids_to_tokens(np.array([[1]])),
    "words number": lambda: vocab().tokens_to_ids(3),
    "vectors none": lambda: text.Vectors.from_file("zz.vec"),
    "vectors uneven": lambda: text.Vectors.from_file(path("uneven.vec")),
    "vectors empty": lambda: text.Vectors.from_file(path("empty.vec")),
    "vectors below 0": lambda: text.Vectors.from_file(path("plain.vec"), -1),
    "fasttext name": lambda: text.FastText.from_file(path("glove.6B.test.txt")),
    "glove name": lambda: text.GloVe.from_file(path("plain.vec")),
    "vectors unknown": lambda: vectors("Vectors", "plain.vec", "zz", unk_init=[9, 9]),
    "vectors unknown text": lambda: vectors("Vectors", "plain.vec", "zz", unk_init="ab"),
    "vectors lower": lambda: vectors("Vectors", "plain.vec", "zz", lower_case_backup=3),
    "vectors number": lambda: text.ToVectors(3),
    "vectors of number": lambda: vectors("Vectors", "plain.vec", 3),
    "jieba file": lambda: text.JiebaTokenizer("zz", path("mp.txt")),
    "jieba path": lambda: text.JiebaTokenizer(3, path("mp.txt")),
    "jieba mode": lambda: text.JiebaTokenizer(path("hmm.txt"), path("mp.txt"), 1),
    "jieba row": lambda: jieba(text.JiebaMode.MIX)(arr("我")),
    "jieba frequency": lambda: jieba(text.JiebaMode.MIX).add_word("a", -10),
    "jieba frequency text": lambda: jieba(text.JiebaMode.MIX).add_word("a", "a"),
    "jieba dict": lambda: jieba(text.JiebaMode.MIX).add_dict(3),
    "jieba dict file": lambda: jieba(text.JiebaMode.MIX).add_dict("zz"),
    "pieces mode": lambda: text.SentencePieceTokenizer(3, text.SPieceTokenizerOutType.STRING),
    "pieces no file": lambda: text.SentencePieceTokenizer("zz.model", text.SPieceTokenizerOutType.STRING)("a"),
    "pieces files": lambda: text.SentencePieceVocab.from_file("a", 50, 0.99, text.SentencePieceModel.CHAR, {}),
    "pieces coverage": lambda: text.SentencePieceVocab.from_file([path("words.txt")], 50, 1, text.SentencePieceModel.CHAR, {}),
    "pieces model": lambda: text.SentencePieceVocab.from_file([path("words.txt")], 50, 0.99, 1, {}),
    "pieces save": lambda: text.SentencePieceVocab.save_model(3, ".", "x"),
}


@case(over=list(REFUSED))
def refused(name):
    return {"error": raised(REFUSED[name])}
