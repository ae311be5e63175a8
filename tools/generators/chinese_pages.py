"""Chinese versions of generated pages, phrase by phrase: results change often, and their words stay the same.

`chinese_pages.po` has the phrases: headings, paragraphs and cells of tables. `{0}` in a phrase stands for any text, which is also
translated. A text without a phrase is divided at its commas; parts without a phrase stay in English.
"""
from __future__ import annotations

import functools
import html
import re
from collections.abc import Iterator
from pathlib import Path

import translations

from torchspore.translations import catalogue

ROOT = Path(__file__).resolve().parents[2]
PHRASES = Path(__file__).with_suffix(".po")
_FIELD = re.compile(r"\{(\d)\}")


def page_of(path: str) -> str:
    """Return the Chinese page of a file of this project."""
    return page((ROOT / path).read_text(encoding="utf-8"), path)


def page(original: str, path: str) -> str:
    """Return the Chinese page of the English page `path`, whose text is `original`, with the record of its sections."""
    lines: list[str] = []
    for block in re.split(r"(^```.*?^```\n)", original, flags=re.S | re.M):
        lines.append(block if block.startswith("```") else "\n\n".join(_translated_block(part) for part in block.split("\n\n")))
    return translations.marked("".join(lines), original, path)


def _translated_block(block: str) -> str:
    """Return a paragraph, or lines of a table, of a list, of headings and of comments, in Chinese."""
    translated: list[str] = []
    paragraph: list[str] = []
    lines = block.split("\n")
    for line, following in zip([*lines, ""], [*lines[1:], "", ""]):
        if line and not line.startswith(("|", "#", "<!--", "- ")):
            paragraph.append(line)
            continue
        if paragraph:
            translated.append(translate(" ".join(paragraph)))
            paragraph = []
        translated.append(_translated_line(line, is_header=following.startswith("|---")))
    return "\n".join(translated[:-1])


def _translated_line(line: str, is_header: bool) -> str:
    if line.startswith("|"):
        return "|".join(_translated_cell(cell, is_header) for cell in line.split("|"))
    if line.startswith("#"):
        marks, _, heading = line.partition(" ")
        return f"{marks} {translate(heading)}"
    if line.startswith("- "):
        return f"- {translate(line[2:])}"
    return line


def _translated_cell(cell: str, is_header: bool) -> str:
    """Return a cell of a table; a phrase between bars is for titles of columns only."""
    text = cell.strip()
    title = _phrases()[0].get(f"| {text} |") if is_header else None
    return f" {title or translate(text)} " if re.search("[A-Za-z]", text) else cell


def translate(text: str) -> str:
    """Return a text in Chinese, as far as there are phrases for it."""
    exact, templates = _phrases()
    if text in exact:
        return exact[text]
    for pattern, translation in templates:
        if match := pattern.fullmatch(text):
            return _FIELD.sub(lambda field: translate(match[f"field{field[1]}"]), translation)
    parts = [translate(part) for part in text.split(", ")] if ", " in text else [text]
    return ("，" if any(map(_is_chinese, parts)) else ", ").join(parts)


def picture_of(path: str) -> str:
    """Return the Chinese version of a chart of this project, an SVG: the texts of its elements translated."""
    original = (ROOT / path).read_text(encoding="utf-8")
    label = re.compile(r"(<(?:text|title)\b[^>]*>)([^<]*[A-Za-z][^<]*)(?=<)")
    return label.sub(lambda match: _label(match[1], _translated_label(match[2])), original)


def _label(tag: str, text: str) -> str:
    """Return a text of a picture; it is narrowed to the width in its tag only if it is wider."""
    width = re.search(r' textLength="([0-9]+)" lengthAdjust="spacingAndGlyphs"', tag)
    pixels = sum(13 if _is_chinese(character) or character in "，：" else 6 for character in text)
    return (tag.replace(width[0], "") if width and pixels <= int(width[1]) else tag) + text


def _translated_label(text: str) -> str:
    return html.escape(translate(html.unescape(text)), quote=False)


def _is_chinese(text: str) -> bool:
    return re.search(r"[\u4e00-\u9fff]", text) is not None


@functools.cache
def _phrases() -> tuple[dict[str, str], list[tuple[re.Pattern[str], str]]]:
    """Return the translations of complete texts, and the patterns of texts with fields, in the order of the file."""
    exact: dict[str, str] = {}
    templates: list[tuple[re.Pattern[str], str]] = []
    for text, translation in catalogue.parse(PHRASES.read_text(encoding="utf-8")).items():
        if _FIELD.search(text):
            templates.append((re.compile("".join(_pattern_parts(text)), re.S), translation))
        elif text:
            exact[text] = translation
    return exact, templates


def _pattern_parts(template: str) -> Iterator[str]:
    """Yield the parts of a regular expression: the literal texts of a template, and a group for each field."""
    for position, part in enumerate(_FIELD.split(template)):
        yield f"(?P<field{part}>.+?)" if position % 2 else re.escape(part)
