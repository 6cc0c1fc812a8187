#!/usr/bin/env python3
"""Opens each page of the documentation in Chromium, 1300 and 400 pixels wide, light and dark.

The search must find each how-to and each command by the words of its title, and by each phrase of PHRASES a page that is
about it, among the first three answers.

A page fails if it is wider than the window, if a window of 1300 pixels cuts a line of code, also in tabs, if a picture is missing or has no size, if the words of a picture are hard to
tell from the background, or if the browser's console has an error.

Usage: check_browser.py FOLDER     the folder that doc/build wrote
Exit status: 0, 1 if a page fails, 77 if this machine lacks Chromium, its driver or the package selenium.
"""
import html
import re
import shutil
import sys
import time
import urllib.parse
from pathlib import Path

# What readers look for, and a page that the search must have among its first three answers.
PHRASES = {"memory map": "contexts/mmap", "cancel": "howto/show-progress", "shared memory": "contexts/shm", "s3": "faq",
           "np.memmap": "python/coming-from"}
WIDTHS, THEMES = (1300, 400), ("light", "dark")
LOOK = """
const said = [], page = document.documentElement, width = window.innerWidth;
if (page.scrollWidth > width) {
  const wide = [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > width + 1
      && !e.closest('.sidebar-drawer, .toc-drawer, pre, figure.picture, .table-wrapper, label'));
  const last = wide.pop();
  said.push(`is ${page.scrollWidth} pixels wide: ${last ? last.outerHTML.slice(0, 120) : ''}`);
}
if (width >= 1300) {
  const hidden = document.head.appendChild(document.createElement('style'));
  hidden.textContent = '.tab-set > .tab-content { display: block !important; }';
  for (const code of document.querySelectorAll('pre'))
    if (code.scrollWidth > code.clientWidth + 1)
      said.push(`cuts code of ${code.scrollWidth} pixels at ${code.clientWidth}: `
          + code.textContent.split('\\n').reduce((one, other) => other.length > one.length ? other : one));
  hidden.remove();
}
for (const image of document.images)
  if (!image.complete || image.naturalWidth === 0) said.push(`lacks the image ${image.src}`);
const numbers = colour => colour.match(/[0-9.]+/g).slice(0, 3).map(Number);
const light = colour => numbers(colour).map(c => c / 255)
    .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
const ground = light(getComputedStyle(document.body).backgroundColor);
for (const svg of document.querySelectorAll('figure.picture svg')) {
  const box = svg.getBoundingClientRect();
  if (box.width < 100 || box.height < 50) said.push(`has a picture of ${box.width} x ${box.height}`);
  for (const text of svg.querySelectorAll('text')) {
    const words = light(getComputedStyle(text).fill);
    const contrast = (Math.max(words, ground) + 0.05) / (Math.min(words, ground) + 0.05);
    if (contrast < 4.5) said.push(`has words of contrast ${contrast.toFixed(1)}: ${text.textContent}`);
  }
}
return said;
"""


def open_browser():
    """None where this machine has no Chromium."""
    try:
        from selenium import webdriver
    except ImportError:
        return None
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not program or not driver:
        return None
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options, webdriver.ChromeService(driver))


def look_at(browser, page):
    """What is wrong with a page, in words."""
    browser.get(page.as_uri())
    for theme in THEMES:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
        for width in WIDTHS:
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
            for complaint in browser.execute_script(LOOK):
                yield f"{theme}, {width} pixels: {complaint}"
    for entry in browser.get_log("browser"):
        if entry["level"] == "SEVERE":
            yield f"console: {entry['message']}"


def pages_of(folder):
    """All pages; of those that are made alike, in folders like _source, the first one."""
    alike = set()
    for page in sorted(folder.rglob("*.html")):
        first = page.relative_to(folder).parts[0]
        if first not in alike:
            yield page
        if first.startswith("_"):
            alike.add(first)


def titles(folder):
    """The pages that the search must find, each with its title."""
    for page in sorted([*folder.glob("howto/*.html"), *folder.glob("tool/*.html")]):
        found = re.search(r"<h1>(.*?)<a", page.read_text(encoding="utf-8"), re.S)
        if found and page.stem != "index":
            yield page, html.unescape(re.sub("<[^>]*>", "", found[1]))


def answers(browser, folder, words, enough):
    """The paths of the pages that the search answers with, once enough(paths) holds or it has ended."""
    browser.get((folder / "search.html").as_uri() + "?q=" + urllib.parse.quote_plus(words))
    paths = []
    for _ in range(50 if (folder / "search.html").exists() else 1):
        links = browser.execute_script("return [...document.querySelectorAll('#search-results li > a')].map(a => a.href)")
        paths = [urllib.parse.unquote(urllib.parse.urlsplit(link).path) for link in links]
        if enough(paths):
            break
        time.sleep(0.1)
    browser.get_log("browser")  # a page that is a file cannot read the texts of others
    return paths


def search_for(browser, folder, page, title):
    """What is wrong with the answer of the search to a title."""
    if page.as_posix() not in answers(browser, folder, title, lambda paths: page.as_posix() in paths):
        yield f"the search does not find it by its title, {title}"


def search_for_phrases(browser, folder):
    """Each page that the search does not answer a phrase with, and what is wrong."""
    for phrase, name in PHRASES.items():
        page = folder / f"{name}.html"
        if page.as_posix() not in answers(browser, folder, phrase, lambda paths: len(paths) >= 3)[:3]:
            yield page, f"it is not among the first three answers to {phrase}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1]).resolve()
    browser = open_browser()
    if not browser:
        print("Chromium, its driver or the package selenium is missing")
        sys.exit(77)
    failed = count = 0
    try:
        for page in pages_of(folder):
            count += 1
            for complaint in look_at(browser, page):
                failed += 1
                print(f"{page.relative_to(folder)}: {complaint}")
        for page, complaint in search_for_phrases(browser, folder):
            failed += 1
            print(f"{page.relative_to(folder)}: {complaint}")
        for page, title in titles(folder):
            for complaint in search_for(browser, folder, page, title):
                failed += 1
                print(f"{page.relative_to(folder)}: {complaint}")
    finally:
        browser.quit()
    if count == 0:
        sys.exit(f"{folder} has no pages")
    print(f"{count} pages, {failed} complaints")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
