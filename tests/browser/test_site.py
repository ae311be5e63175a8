"""The built site in a browser that opened it as a file: its width, its search, and the switch of the language."""
from __future__ import annotations

import functools
import json
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import build_site
import pytest
from browser import axe, chromium
from documentation_site import versions

pytestmark = [chromium.needed, pytest.mark.needs("zensical"), pytest.mark.slow]
SIZES = {"phone": (390, 844), "desktop": (1400, 900)}
PAGES = [f"{name}.html" for name in
         ("index", "docs/differences", "docs/reference/names", "docs/zh/guides/start", "docs/reference/api/mindspore.nn")]
SEARCH = "document.activeElement.shadowRoot"


class QuietHandler(SimpleHTTPRequestHandler):
    """Serve files without a line for each request."""

    def log_message(self, format: str, *values: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def site() -> Path:
    """Build the site and return its folder."""
    assert build_site.main([]) == 0
    return build_site.ROOT / "build/site"


@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_wider_than_the_screen(site: Path, size: str) -> None:
    program = chromium.executable()
    assert program is not None
    with chromium.browser(program, *SIZES[size]) as browser:
        for page in PAGES:
            browser.open((site / page).as_uri(), "document.readyState == 'complete'")
            assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), page
        assert browser.errors == []


def test_a_row_of_a_wide_table_is_a_list_on_a_phone(site: Path) -> None:
    program = chromium.executable()
    assert program is not None
    with chromium.browser(program, *SIZES["phone"]) as browser:
        for page in ("docs/reference/context.html", "docs/zh/reference/context.html"):
            browser.open((site / page).as_uri(), "document.querySelector('table[data-rows]')", 60)
            is_inside = "cell => cell.scrollWidth <= cell.clientWidth && cell.getBoundingClientRect().right <= innerWidth"
            assert browser.evaluate(f"[...document.querySelectorAll('table[data-rows] td')].every({is_inside})")
            headings = browser.evaluate("[...document.querySelectorAll('table[data-rows] tr:nth-child(2) td')].map(c => c.dataset.heading)")
            assert headings[:2] == (["参数", "取值"] if "zh" in page else ["option", "values"])
    with chromium.browser(program, *SIZES["desktop"]) as browser:
        browser.open((site / "docs/reference/context.html").as_uri(), "document.querySelector('table')?.offsetWidth")
        assert browser.evaluate("!document.querySelector('table[data-rows]')")


def test_the_search_works_from_a_file(site: Path, browser: chromium.Browser) -> None:
    browser.open((site / "docs/guides/start.html").as_uri(), "document.readyState == 'complete'")
    browser.evaluate("document.querySelector('[for=__search]').click()")
    for word, target in (("WithLossCell", "docs/reference/api/mindspore.nn.html"), ("安装", "docs/zh/guides/install.html")):
        browser.wait(f"{SEARCH}?.querySelector('input')", 20)
        browser.evaluate(f"{SEARCH}.querySelector('input').focus(), {SEARCH}.querySelector('input').select()")
        for character in word:
            browser.press(character)
        browser.wait(f"[...{SEARCH}.querySelectorAll('a')].some(a => a.href.includes({json.dumps(target)}))", 20)


def test_the_switch_of_the_language(site: Path, browser: chromium.Browser) -> None:
    links = {
        "docs/guides/start.html": "docs/zh/guides/start.html", "docs/zh/guides/start.html": "docs/guides/start.html",
        "CONTRIBUTING.html": "README.zh-CN.html", "README.zh-CN.html": "index.html",
    }
    for page, target in links.items():
        browser.open((site / page).as_uri(), "document.querySelector('.torchspore-language')")
        assert browser.evaluate("document.querySelector('.torchspore-language').href") == (site / target).as_uri(), page
        is_chinese = "zh" in page
        assert browser.evaluate("document.documentElement.lang") == ("zh-Hans" if is_chinese else "en")


def test_each_language_has_its_navigation(site: Path, browser: chromium.Browser) -> None:
    texts = "[...document.querySelectorAll('.md-tabs__link, .md-path__link, .md-footer__direction')].map(link => link.textContent.trim())"
    browser.open((site / "docs/guides/context.html").as_uri(), "document.readyState == 'complete'")
    english = browser.evaluate(texts)
    assert english[0] == "Home" and english[-2:] == ["Previous", "Next"] and "".join(english).isascii()
    browser.open((site / "docs/zh/guides/context.html").as_uri(), "document.readyState == 'complete'")
    chinese = browser.evaluate(texts)
    assert chinese[0] == "首页" and chinese[-2:] == ["上一页", "下一页"] and not any(text.isascii() for text in chinese)


def test_no_link_leads_to_the_next_page_of_the_other_language(site: Path, browser: chromium.Browser) -> None:
    directions = {"SECURITY.html": ["Previous"], "README.zh-CN.html": ["下一页"], "docs/zh/guides/install.html": ["上一页", "下一页"]}
    for page, expected in directions.items():
        browser.open((site / page).as_uri(), "document.readyState == 'complete'")
        texts = browser.evaluate("[...document.querySelectorAll('.md-footer__direction')].map(link => link.textContent.trim())")
        assert texts == expected, page


def test_the_selector_of_versions(site: Path, browser: chromium.Browser, tmp_path: Path) -> None:
    for version in ("0.1.0", "0.2.0"):
        versions.add_version(site, tmp_path, version)
    handler = functools.partial(QuietHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/0.1.0/docs/guides/start.html"
        browser.open(address, "document.querySelector('.md-version__link')", 60)
        names = browser.evaluate("[...document.querySelectorAll('.md-version__link')].map(link => link.textContent.trim())")
        assert names == ["0.2.0latest", "0.1.0"]                          # the alias stands behind the newest release
        server.shutdown()


@pytest.mark.needs(axe.PACKAGE)
@pytest.mark.parametrize("page", ["index.html", "README.zh-CN.html", "docs/guides/start.html", "docs/zh/guides/context.html"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_rules_of_accessibility(site: Path, page: str, size: str, scheme: str) -> None:
    program = chromium.executable()
    assert program is not None
    with chromium.browser(program, *SIZES[size]) as browser:
        browser.set_color_scheme(scheme)
        browser.open((site / page).as_uri(), "document.readyState == 'complete'", 60)
        assert axe.violations(browser) == []
