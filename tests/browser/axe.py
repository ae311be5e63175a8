"""axe-core in a page: the rules of accessibility that a program can check (WCAG 2 A and AA, best practices).

`make browser` installs the package axe-playwright-python without its requirement playwright: of the package only the script is used.
"""
from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

from browser.chromium import Browser

PACKAGE = "axe_playwright_python"
SEVERE = ("serious", "critical")


def violations(browser: Browser) -> list[str]:
    """Return a line for each element of the open page that violates a rule of impact serious or critical."""
    spec = find_spec(PACKAGE)
    assert spec is not None and spec.origin is not None
    browser.evaluate((Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8") + ";0")
    report = browser.evaluate("axe.run(document, {resultTypes: ['violations']}).then((result) => JSON.stringify(result.violations))")
    return [
        f"{rule['id']} ({rule['impact']}): {' '.join(map(str, node['target']))}: {node['html'][:120]}: {_reason(node)}"
        for rule in json.loads(report) if rule["impact"] in SEVERE for node in rule["nodes"]
    ]


def _reason(node: dict[str, list[dict[str, str]]]) -> str:
    """Return the first reason of a violation."""
    return next((check["message"] for kind in ("any", "all", "none") for check in node[kind]), "")
