"""Errors that code writes in English, in the user's language."""
from __future__ import annotations

from collections.abc import Iterator

import pytest

from torchspore import translations
from torchspore.translations.refusals import translate_refusal


@pytest.fixture
def chinese(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Selects Chinese for a test."""
    monkeypatch.setenv(translations.VARIABLE, "zh")
    translations.select()
    yield
    monkeypatch.delenv(translations.VARIABLE)
    translations.select()


TEXTS = {
    "Conv2d(pad_mode='x'): expected 'same', 'valid' or 'pad'.": "Conv2d(pad_mode='x')：应为'same'、'valid'或'pad'。",
    "CellList: expected Cells, got int.": "CellList：应为Cell，实际为int。",
    "expected an input of 4 axes, got shape (2, 3).": "应为4个轴的输入，实际为形状(2, 3)。",
    "f: expected an input of 2 or 3 axes, got shape (2,).": "f：应为2个或3个轴的输入，实际为形状(2,)。",
    "expected integers as indexes, got Float32.\n\nhint: write indices.astype(mindspore.int32).":
        "应为整数类型的索引，实际为Float32。\n\n提示：请写成indices.astype(mindspore.int32)。",
    "f(x=1): expected a number from 0 to 1. MindSpore says more.": "f(x=1)：应为0到1之间的数值。 MindSpore says more.",
    "matmul: expected one dtype, got Int64 and Float16.": "matmul：应为相同的数据类型，实际为Int64和Float16。",
    "f(x={0}): expected a Tensor.": "f(x={0})：应为Tensor。",
}


@pytest.mark.usefixtures("chinese")
@pytest.mark.parametrize("text", TEXTS)
def test_a_text_with_a_template_is_translated(text: str) -> None:
    assert translate_refusal(text) == TEXTS[text]


@pytest.mark.usefixtures("chinese")
@pytest.mark.parametrize("text", ["", "expected str, bytes or os.PathLike object, not int", "f: expected a thing that has no template.",
                                  "it is wrong.", "f：应为整数。"])
def test_a_text_without_a_template_stays(text: str) -> None:
    assert translate_refusal(text) == text


@pytest.mark.parametrize("text", TEXTS)
def test_english_stays(text: str) -> None:
    assert translate_refusal(text) == text
