"""`JiebaTokenizer`: Chinese word segmentation by a dictionary and by a hidden Markov model of characters.

The files and the rules are those of cppjieba (https://github.com/yanyiwu/cppjieba, MIT), whose dictionaries MindSpore's programs name;
it needs no library. First comes the likeliest path through the words of the dictionary ("MP"). The model then segments the remaining runs
of single characters ("HMM", states B, E, M, S: a character begins, ends or is inside a word, or is one).
"""
from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.validator_helpers import UINT32_MAX, check_int, check_type
from torchspore.mindspore.dataset.text.choices import JiebaMode
from torchspore.mindspore.dataset.text.tokenizers import Tokenizer

_SEPARATORS = frozenset(" \t\n，。")
_NEVER = -3.14e100
_B, _E, _M, _S = range(4)


class JiebaTokenizer(Tokenizer):
    """Segments Chinese by the dictionary `mp_path` (lines of word, frequency, kind) and the model `hmm_path`; `mode` selects them."""

    def __init__(self, hmm_path: str, mp_path: str, mode: JiebaMode = JiebaMode.MIX, with_offsets: bool = False) -> None:
        check_type("JiebaTokenizer", "hmm_path", hmm_path, str, "a path")
        check_type("JiebaTokenizer", "mp_path", mp_path, str, "a path")
        check_type("JiebaTokenizer", "mode", mode, JiebaMode, "a member of JiebaMode")
        super().__init__(with_offsets)
        for name, path in (("hmm_path", hmm_path), ("mp_path", mp_path)):
            if not Path(path).is_file():
                hint = "the files are in the folder dict of https://github.com/yanyiwu/cppjieba"
                raise ValueError(message(f"JiebaTokenizer({name}={path!r})", "an existing file", hint=hint))
        self.mode = mode
        self._letters = _Letters(Path(hmm_path))
        self._words = _Words(Path(mp_path))

    def add_word(self, word: str, freq: int | None = None) -> None:
        """Adds a word to the dictionary; without `freq` it gets the median frequency."""
        check_type("add_word", "word", word, str, "a str")
        if freq is not None:
            check_int("add_word", "freq", freq, 0, UINT32_MAX)
        self._words.add(word, freq)

    def add_dict(self, user_dict: Any) -> None:
        """Adds the words of a dict of words and frequencies, or of a file with a word and its frequency in each line."""
        if isinstance(user_dict, dict):
            for word, freq in user_dict.items():
                self.add_word(word, freq)
            return
        check_type("add_dict", "user_dict", user_dict, (str, dict), "a dict or the path of a file")
        if not Path(user_dict).is_file():
            raise ValueError(message(f"add_dict({short(user_dict)})", "an existing file"))
        for line in Path(user_dict).read_text(encoding="utf-8").splitlines():
            fields = line.split()
            if len(fields) == 2 and fields[1].isdigit():
                self.add_word(fields[0], int(fields[1]))

    def _spans(self, text: str) -> list[tuple[int, int]]:
        spans = []
        start = 0
        for index, letter in enumerate([*text, "\n"]):
            if letter in _SEPARATORS:
                if index > start:
                    spans += [(start + first, start + right) for first, right in self._cut(text[start:index])]
                if index < len(text):
                    spans.append((index, index + 1))
                start = index + 1
        return spans

    def _cut(self, text: str) -> list[tuple[int, int]]:
        if self.mode is JiebaMode.HMM:
            return self._letters.cut(text, 0, len(text))
        words = self._words.cut(text)
        if self.mode is JiebaMode.MP:
            return words
        spans: list[tuple[int, int]] = []
        alone: list[int] = []
        for first, right in [*words, (len(text), len(text) + 2)]:
            if right == first + 1 and text[first] not in self._words.single_letters:
                alone.append(first)
                continue
            if alone:
                spans += self._letters.cut(text, alone[0], alone[-1] + 1)
                alone = []
            spans.append((first, right))
        return spans[:-1]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise RuntimeError(message(f"JiebaTokenizer({str(path)!r})", f"a text file ({error})")) from None


class _Words:
    """Read the dictionary: the logarithm of each word's share."""

    def __init__(self, path: Path) -> None:
        counts: dict[str, float] = {}
        for number, line in enumerate(_lines(path), 1):
            fields = line.split(" ")
            try:
                counts[fields[0]] = float(fields[1])
            except (IndexError, ValueError):
                raise RuntimeError(message(f"{path}, line {number}", "a word, its frequency and its kind")) from None
        if not counts:
            raise RuntimeError(message(f"JiebaTokenizer({str(path)!r})", "a dictionary of at least one word"))
        self._sum = sum(counts.values())
        self._weights = {word: math.log(count / self._sum) if count else _NEVER for word, count in counts.items()}
        ordered = sorted(self._weights.values())
        self._least, self._middle = ordered[0], ordered[len(ordered) // 2]
        self._longest = max(map(len, counts))
        self.single_letters: set[str] = set()

    def add(self, word: str, count: int | None) -> None:
        self._weights[word] = math.log(count / self._sum) if count else self._middle
        self._longest = max(self._longest, len(word))
        if len(word) == 1:
            self.single_letters.add(word)

    def cut(self, text: str) -> list[tuple[int, int]]:
        """Return the likeliest words, computed from the end; of equally likely ones the shorter first word."""
        best = [0.0] * (len(text) + 1)
        ends = [0] * len(text)
        for start in range(len(text) - 1, -1, -1):
            best[start], ends[start] = self._weights.get(text[start], self._least) + best[start + 1], start + 1
            for end in range(start + 2, min(start + self._longest, len(text)) + 1):
                weight = self._weights.get(text[start:end])
                if weight is not None and weight + best[end] > best[start]:
                    best[start], ends[start] = weight + best[end], end
        spans = []
        start = 0
        while start < len(text):
            spans.append((start, ends[start]))
            start = ends[start]
        return spans


class _Letters:
    """Read the model: a line of logarithms of the initial states, four of transitions, and one `letter:logarithm,...` for each state."""

    def __init__(self, path: Path) -> None:
        lines = [line for line in _lines(path) if line and not line.startswith("#")]
        try:
            self._start = [float(word) for word in lines[0].split()]
            self._follows = [[float(word) for word in line.split()] for line in lines[1:5]]
            self._emits = [{item[0]: float(item[2:]) for item in line.split(",")} for line in lines[5:9]]
        except (IndexError, ValueError) as error:
            raise RuntimeError(message(f"JiebaTokenizer({str(path)!r})", f"a model of cppjieba's ({error})")) from None
        if [len(row) for row in [self._start, *self._follows]] != [4] * 5 or len(self._emits) != 4:
            raise RuntimeError(message(f"JiebaTokenizer({str(path)!r})", "a model of cppjieba's, of four states"))

    def cut(self, text: str, start: int, end: int) -> list[tuple[int, int]]:
        """Yield the words of text[start:end]: by the model, without splitting words and numbers of ASCII."""
        spans: list[tuple[int, int]] = []
        first = position = start
        while position < end:
            if text[position] >= "\x80":
                position += 1
                continue
            spans += self._states(text, first, position)
            first = position
            position += 1
            if text[first].isalpha():
                while position < end and text[position].isascii() and text[position].isalnum():
                    position += 1
            elif text[first].isdigit():
                while position < end and (text[position] in "0123456789."):
                    position += 1
            spans.append((first, position))
            first = position
        return spans + self._states(text, first, position)

    def _states(self, text: str, start: int, end: int) -> list[tuple[int, int]]:
        """Run Viterbi's algorithm; a word ends at the states E and S."""
        if start == end:
            return []
        weights = [self._start[state] + self._emits[state].get(text[start], _NEVER) for state in range(4)]
        paths = []
        for letter in text[start + 1 : end]:
            emits = [self._emits[state].get(letter, _NEVER) for state in range(4)]
            origins, reached = [], []
            for state in range(4):
                best, source = _NEVER, _E
                for before in range(4):
                    weight = weights[before] + self._follows[before][state] + emits[state]
                    if weight > best:
                        best, source = weight, before
                origins.append(source)
                reached.append(best)
            paths.append(origins)
            weights = reached
        state = _E if weights[_E] >= weights[_S] else _S
        states = [state]
        for origins in reversed(paths):
            state = origins[state]
            states.append(state)
        spans = []
        first = start
        for position, state in enumerate(reversed(states), start + 1):
            if state in (_E, _S):
                spans.append((first, position))
                first = position
        return spans
