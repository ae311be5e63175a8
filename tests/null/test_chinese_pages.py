"""Chinese versions of generated pages: tools/generators/chinese_pages.py translates phrases; figures and code stay as they are."""
from __future__ import annotations

import re

import pytest
import translations
from generators import chinese_pages

from torchspore.translations import catalogue

PHRASES = {text: phrase for text, phrase in catalogue.parse(chinese_pages.PHRASES.read_text(encoding="utf-8")).items() if text}

PAGE = """<!-- head -->

# Performance

![The time of a step as a ratio to torch eager](guides/images/performance.svg)

<!-- graph-lenet -->
Made by `python benchmarks/graph.py --nets lenet` on 2 cores (x86_64), torch
2.13.0+cpu, Python 3.11.7.

## LeNet-5, batch 64, training step

| contender | rows | ratio to one after the other (median, min .. max of 5) |
|---|---:|---|
| rows | 2,763 | 1.00 (1.00 .. 1.00) |

```text
mode

rows
```
"""


def test_a_page() -> None:
    assert chinese_pages.page(PAGE, "docs/a.md").partition("\n\n<!-- translation of docs/a.md;")[0] == """<!-- head -->

# 性能

![一个step的时间与torch eager之比](../guides/images/zh/performance.svg)

<!-- graph-lenet -->
由`python benchmarks/graph.py --nets lenet`在2核的机器（x86_64）上测得，torch 2.13.0+cpu，Python 3.11.7。

## LeNet-5，batch 64，训练step

| 对象 | 表的行数 | 与依次执行之比（中位数，5轮的最小值 .. 最大值） |
|---|---:|---|
| rows | 2,763 | 1.00 (1.00 .. 1.00) |

```text
mode

rows
```"""


def test_the_record_is_current_and_ends_with_the_page() -> None:
    text = chinese_pages.page(PAGE, "docs/a.md")
    assert translations.recorded_sections(text) == translations.sections(PAGE)
    assert text.endswith("\n-->\n") and text.rpartition("<!--")[2].count("-->") == 1


def test_a_text_without_a_phrase_stays_in_english() -> None:
    assert chinese_pages.translate("Nothing known, x") == "Nothing known, x"
    assert chinese_pages.translate("Nothing known, inference") == "Nothing known，推理"


@pytest.mark.parametrize("text", PHRASES)
def test_a_phrase_and_its_translation_have_the_same_fields_and_code(text: str) -> None:
    for pattern in (r"\{\d\}", "`[^`]*`"):
        missing = set(re.findall(pattern, text)) - set(re.findall(pattern, PHRASES[text]))
        assert not missing
    assert sorted(re.findall(r"\{\d\}", text)) == sorted(re.findall(r"\{\d\}", PHRASES[text]))
