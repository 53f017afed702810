#!/usr/bin/env python3
"""Each .cpp file is named in a CMakeLists.txt of its folder or one above: what is not named is never built, and a
test that is not named never runs."""

import re

from lintlib import ROOT, files, finding, finish

for path in files(".cpp", under=("src", "tests", "microbench", "examples")):
    for folder in path.parents:
        lists = ROOT / folder / "CMakeLists.txt"
        if not lists.is_file():
            continue
        text = re.sub(r"#[^\n]*", "", lists.read_text(encoding="utf-8"))
        name = re.escape(str(path.relative_to(folder)))
        if re.search(rf"(?<![\w./-])(\$\{{\w+\}}/)?{name}(?![\w./-])", text):
            break
    else:
        finding(path, 1, f"named in no CMakeLists.txt; add it to {path.parent}/CMakeLists.txt")
finish()
