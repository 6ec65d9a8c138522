#!/usr/bin/env python3
"""Checks the pages of a built site: tools/check_site.py [FOLDER]. Links, pictures, scripts and anchors within it lead somewhere,
pictures have a text, pages a language, a title and one first heading, and nothing is fetched from elsewhere."""
import html.parser
import pathlib
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]
FETCHED = {("img", "src"), ("script", "src"), ("link", "href"), ("object", "data")}


class Page(html.parser.HTMLParser):
    """The links, the anchors and the faults of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.faults, self.headings, self.title = [], set(), [], 0, False
        self.feed(text)
        if self.headings != 1:
            self.faults.append(f"{self.headings} first headings")
        if not self.title:
            self.faults.append("no title")

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}
        self.headings += tag == "h1"
        self.title |= tag == "title"
        if tag == "html" and not found.get("lang"):
            self.faults.append("no language")
        if tag == "img" and not found.get("alt"):
            self.faults.append(f"no text for {found.get('src')}")
        for key in ("href", "src", "data"):
            if found.get(key):
                self.links.append((tag, key, found[key]))


def faults_of(folder):
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html")) if path.name != "404.html"}
    for path, page in pages.items():
        here = path.relative_to(folder.resolve())
        yield from (f"{here}: {fault}" for fault in page.faults)
        for tag, key, link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                if (tag, key) in FETCHED and parts.scheme != "data":
                    yield f"{here}: {link} is fetched from elsewhere"
                continue
            target = path
            if parts.path:
                target = (path.parent / urllib.parse.unquote(parts.path)).resolve()
                target = target / "index.html" if target.is_dir() else target
                if not target.exists():
                    yield f"{here}: there is no {link}"
                    continue
            if parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].anchors:
                yield f"{here}: {link} has no such anchor"


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/site"
    if not (folder / "index.html").exists():
        sys.exit(f"check_site: there is no site in {folder}; `make docs` builds it")
    faults = list(dict.fromkeys(faults_of(folder)))
    print("\n".join(faults), file=sys.stderr, end="\n" if faults else "")
    sys.exit(f"check_site: {len(faults)} faults" if faults else 0)


if __name__ == "__main__":
    main()
