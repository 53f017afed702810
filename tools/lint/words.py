#!/usr/bin/env python3
"""Words that may stand nowhere in the project: paths of one machine, hosts of package registries (package names
and suites are enough; who needs a mirror configures it), and open ends without an issue."""

import re

from lintlib import files, finding, finish, read

# One letter of each word is bracketed so that this file does not contain it.
RULES = [
    (r"(?<![\w.~}-])/w[o]rk/|(?<![\w/])\.\./s[h]ared\b", "a path of one machine; use a path within the project"),
    (r"(?<![\w.~}-])/(h[o]me|U[s]ers)/(?!user\b|you\b|me\b)[a-z]\w*/", "a path of one user; use $HOME, /h" r"ome/you or a relative path"),
    (
        r"\bd[e]b\.debian\.org|\bs[e]curity\.debian\.org|\ba[r]chive\.ubuntu\.com|\bp[y]pi\.org|p[y]thonhosted\.org"
        r"|\br[e]gistry\.npmjs\.org|\bc[r]ates\.io\b|\bp[r]oxy\.golang\.org",
        "a package registry's host; name the package or suite only",
    ),
    (r"\bT[O]DO\b(?!\(#(\d+|issue)\))|\bF[I]XME\b", "an open end without an issue; write it as TO" r"DO(#number)"),
]

for path in files():
    for number, line in enumerate(read(path).split("\n"), 1):
        for pattern, what in RULES:
            if match := re.search(pattern, line):
                finding(path, number, f"{match.group(0)}: {what}")
finish()
