#!/usr/bin/env python3
"""Builds the site of docs/site.yml into build/site: the pages of the tree as they are, and a page for each operation.

tools/build_site.py [--without-operations]
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[1]
WORK = ROOT / "build/site_source"
SOURCE = WORK / "source"
CODE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)|<img[^>]* src=\"([^\":]+)\"")


def pages():
    """The pages of the tree."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "skills").rglob("*.md"), ROOT / "examples/README.md"])


def _list_folder(folder):
    """A page that lists a folder that pages point at and that has none."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    text = f"# {folder.relative_to(ROOT)}\n\n" + "".join(f"- [{name}]({name})\n" for name in names)
    (SOURCE / folder.relative_to(ROOT) / "README.md").write_text(text, encoding="utf-8")
    return names


def stage():
    """Copies pages, and the files that they point at, to where the generator reads them."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCE / "docs", ignore=shutil.ignore_patterns("*.md", "site.yml", "requirements.txt", "__pycache__"))
    listed = []
    for path in pages():
        text = path.read_text(encoding="utf-8")
        for match in LINK.finditer(CODE.sub("", text)):
            target = (path.parent / (match[1] or match[2])).resolve()
            place = SOURCE / target.relative_to(ROOT)
            if target.is_dir():
                place.mkdir(parents=True, exist_ok=True)
                if not (target / "README.md").exists():
                    listed.append(str(target.relative_to(ROOT) / "README.md"))
                    for name in _list_folder(target):
                        shutil.copyfile(target / name, place / name)
                text = text.replace(f"]({match[1]})", f"]({match[1].rstrip('/')}/README.md)")
            elif target.suffix != ".md" and not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(target, place)
        place = SOURCE / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return listed


def _decisions():
    found = [path.relative_to(ROOT) for path in pages() if path.parent.name == "decisions" and path.name != "README.md"]
    return ["docs/decisions/README.md", *map(str, found)]


def _operations(folder):
    """The pages of operations, written, as entries of the navigation."""
    os.environ.setdefault("TILEWRIGHT_ENGINE", "interpreter")  # which needs no compiler
    import reference_pages

    folder.mkdir(parents=True)
    reference_pages.write(folder)
    at = "docs/reference/operations"
    rows = reference_pages.listed()
    for group, (title, _) in reference_pages.GROUPS.items():
        names = [row[0] for row in rows if row[1] == group]
        yield {title: [f"{at}/{group}_operations.md", *({f"T.{name}": f"{at}/{name}.md"} for name in names)]}


def _filled(nav, operations):
    """The navigation, with what stands for lists of pages."""
    for entry in nav:
        if entry == "OPERATIONS":
            yield from operations
        elif isinstance(entry, dict):
            ((title, inner),) = entry.items()
            yield {title: _decisions() if inner == "DECISIONS" else list(_filled(inner, operations)) if isinstance(inner, list) else inner}
        else:
            yield entry


def main():
    folders = stage()
    site = yaml.safe_load((ROOT / "docs/site.yml").read_text(encoding="utf-8"))
    operations = [] if "--without-operations" in sys.argv else list(_operations(SOURCE / "docs/reference/operations"))
    site["nav"] = list(_filled(site["nav"], operations))
    site["not_in_nav"] = "\n".join(f"/{name}" for name in folders)
    (WORK / "mkdocs.yml").write_text(yaml.safe_dump(site, sort_keys=False), encoding="utf-8")
    os.environ["NO_MKDOCS_2_WARNING"] = "1"  # docs/decisions/029-the-site.md knows it
    return subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--clean", "--strict", "-f", WORK / "mkdocs.yml"]).returncode


if __name__ == "__main__":
    sys.exit(main())
