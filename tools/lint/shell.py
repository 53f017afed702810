#!/usr/bin/env python3
"""Shell scripts are clean for shellcheck, and for bash's own reading of them."""

import re
import shutil
import subprocess
import sys

from lintlib import ROOT, files, finding, finish, read

# Parts that are sourced are checked with the script that sources them (-a), where their variables are known.
scripts = [p for p in files() if re.match(r"#!.*\b(ba)?sh\b", read(p))]
for script in scripts:
    run = subprocess.run(["bash", "-n", str(script)], cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        finding(script, 1, f"bash cannot read it: {run.stderr.strip()}")
if not shutil.which("shellcheck"):
    sys.exit("shell: shellcheck is not here; run this with: ./dev lint")
if scripts:
    command = ["shellcheck", "-x", "-a", "-f", "gcc", *map(str, scripts)]
    for line in subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines():
        if match := re.match(r"(.+?):(\d+):\d+: (?:\w+): (.*)", line):
            finding(match.group(1), int(match.group(2)), match.group(3))
finish()
