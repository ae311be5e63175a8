"""Metrics that count: the ROC curve of scores, the BLEU score of translations."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchspore.base.arguments import check_bool, check_int, check_type
from torchspore.base.text import message, short
from torchspore.mindspore.train.metrics.metric import Metric, rearrange_inputs


class ROC(Metric):
    """The ROC curve: the rates of false and of true positives at each threshold, the highest first.

    Scores are (N,) for two classes, of which `pos_label` (1) is the positive one, or (N, `class_num`), where each class is compared with
    the others and the result is lists of curves.
    """

    def __init__(self, class_num: int | None = None, pos_label: int | None = None) -> None:
        super().__init__()
        if class_num is not None:
            check_int("ROC", "class_num", class_num, 1)
        if pos_label is not None:
            check_type("ROC", "pos_label", pos_label, int, "an int")
        self.class_num, self.pos_label = class_num, pos_label
        self.clear()

    def clear(self) -> None:
        self._scores: list[np.ndarray] = []
        self._labels: list[np.ndarray] = []

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        scores, labels = self._take_(inputs)
        classes = 1 if scores.ndim == labels.ndim else scores.shape[1] if scores.ndim == labels.ndim + 1 else 0
        if classes != (1 if scores.ndim == labels.ndim else self.class_num):
            raise ValueError(message(f"ROC.update of shapes {list(scores.shape)} and {list(labels.shape)}",
                                     "scores (N,), or (N, class_num), and labels (N,)"))
        if scores.shape[0] != labels.shape[0]:
            raise ValueError(message(f"ROC.update of {scores.shape[0]} scores and {labels.shape[0]} labels", "as many of both"))
        self._scores.append(scores if scores.ndim > labels.ndim else scores.reshape(-1))
        self._labels.append(labels.reshape(-1))

    def eval(self) -> tuple[Any, Any, Any]:
        """Returns (false positive rates, true positive rates, thresholds), arrays, or for several classes lists of arrays."""
        self._need_(bool(self._scores))
        scores, labels = np.concatenate(self._scores), np.concatenate(self._labels)
        if scores.ndim == 1:
            return _curve(scores, labels == (1 if self.pos_label is None else self.pos_label))
        curves = [_curve(scores[:, number], labels == number) for number in range(scores.shape[1])]
        return tuple(map(list, zip(*curves)))  # type: ignore[return-value]


def _curve(scores: np.ndarray, is_positive: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    order = np.argsort(scores)[::-1]
    scores, is_positive = scores[order], is_positive[order]
    last = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)      # the last index of each score
    true = np.cumsum(is_positive)[last]
    false = 1 + last - true
    if not true[-1] or not false[-1]:
        missing = "positive" if not true[-1] else "negative"
        raise ValueError(message(f"ROC.eval without a {missing} sample", "samples of both kinds"))
    begun = [np.append(0, counts) / counts[-1] for counts in (false, true)]
    return begun[0], begun[1], np.append(scores[last][0] + 1, scores[last])


class BleuScore(Metric):
    """BLEU: the share of the n-grams of translations that are in their references, n from 1 to `n_gram`, as a geometric mean, with a
    penalty for shorter translations (Papineni et al., 2002). With `smooth`, one is added to each count (Lin and Och, 2004).
    """

    def __init__(self, n_gram: int = 4, smooth: bool = False) -> None:
        super().__init__()
        check_type("BleuScore", "n_gram", n_gram, int, "an int")
        if not 1 <= n_gram <= 4:
            raise ValueError(message(f"BleuScore(n_gram={n_gram})", "an int from 1 to 4"))
        check_bool("BleuScore", "smooth", smooth)
        self.n_gram, self.smooth = n_gram, smooth
        self.clear()

    def clear(self) -> None:
        self._matches, self._totals = np.zeros(self.n_gram), np.zeros(self.n_gram)
        self._length = self._reference_length = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Takes translations, lists of words, and for each a list of references. Raises ValueError if their numbers differ."""
        if len(inputs) != 2:
            raise ValueError(message(f"BleuScore.update of {len(inputs)} values", "two values, translations and references"))
        translations, references = inputs
        if not isinstance(translations, Sequence) or not isinstance(references, Sequence) or len(translations) != len(references):
            raise ValueError(message(f"BleuScore.update({short(translations)}, {short(references)})", "as many references as translations"))
        for words, candidates in zip(translations, references):
            self._length += len(words)
            self._reference_length += min((len(reference) for reference in candidates), key=lambda length: abs(length - len(words)))
            reference_grams: Counter[tuple[Any, ...]] = Counter()
            for reference in candidates:
                reference_grams |= _grams(reference, self.n_gram)
            grams = _grams(words, self.n_gram)
            for gram, count in (grams & reference_grams).items():
                self._matches[len(gram) - 1] += count
            for gram, count in grams.items():
                self._totals[len(gram) - 1] += count

    def eval(self) -> np.ndarray:
        """Returns the score over all translations, from 0 to 1."""
        self._need_(self._length > 0)
        if not self._matches.all():
            return np.array(0.0)
        shares = (self._matches + 1) / (self._totals + 1) if self.smooth else self._matches / self._totals
        penalty = 1.0 if self._length > self._reference_length else np.exp(1 - self._reference_length / self._length)
        return np.array(penalty * np.exp(np.log(shares).mean()))


def _grams(words: Sequence[Any], longest: int) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(words[at : at + n]) for n in range(1, longest + 1) for at in range(len(words) - n + 1))
