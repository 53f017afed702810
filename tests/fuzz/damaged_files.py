"""Damaged GGUF files through `paceline check`, child process and all: damaged_files.py COUNT [SEED].
Each ends in a verdict (0, 12) or in one line of error that names the file (3); never in a crash or a
hang."""

import collections
import os
import random
import subprocess
import sys
import tempfile

PROGRAM = os.environ["PACELINE_PROGRAM"]
WRITE_GGUF = os.environ["PACELINE_WRITE_GGUF"]
EDGES = [0, 1, 0x7F, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 32, 1 << 60, (1 << 63) - 1, (1 << 64) - 1]


def damage(whole, header, dice):
    """Half of the files are damaged anywhere in the header; the others where the lengths stay right: in the
    texts, kinds and scores of tokens and in the values of keys, so that libllama gets to see them."""
    data = bytearray(whole)
    inside = dice.random() < 0.5
    for _ in range(dice.randint(1, 3)):
        if inside:
            damage_value(data, header, dice)
        else:
            damage_anywhere(data, header, dice)
    if dice.random() < 0.05:
        del data[dice.randrange(len(data)):]
    return bytes(data)


def damage_value(data, header, dice):
    keys = []
    at = 0
    for name in (b"tokenizer.ggml.", b"llama.", b"mamba.", b"gemma2.", b"general."):
        while 0 <= (at := data.find(name, at)) < header:
            keys.append(at)
            at += 1
        at = 0
    at = dice.choice(keys)
    length = int.from_bytes(data[at - 8:at], "little")
    value = at + length + 4
    if data[at:at + length].endswith((b".tokens", b".scores", b".token_type")):
        element = int.from_bytes(data[value:value + 4], "little")
        count = int.from_bytes(data[value + 4:value + 12], "little")
        value += 12
        if element == 8:
            for _ in range(dice.randrange(max(count, 1))):
                value += 8 + int.from_bytes(data[value:value + 8], "little")
            value += 8
        else:
            value += 4 * dice.randrange(max(count, 1))
    if dice.random() < 0.5 and value + 4 < len(data):
        data[value:value + 4] = dice.choice(EDGES).to_bytes(8, "little")[:4]
    elif value + 8 < len(data):
        data[value + dice.randrange(8)] = dice.randrange(256)


def damage_anywhere(data, header, dice):
    at = dice.randrange(min(header, len(data)) if dice.random() < 0.95 else len(data))
    kind = dice.randrange(5)
    if kind == 0:
        data[at] = dice.randrange(256)
    elif kind == 1:
        data[at] ^= 1 << dice.randrange(8)
    elif kind == 2:
        value = dice.choice(EDGES).to_bytes(8, "little")[: dice.choice((4, 8))]
        data[at:at + len(value)] = value
    elif kind == 3:
        del data[at:at + dice.randint(1, 16)]
    else:
        data[at:at] = data[at:at + dice.randint(1, 16)]


def main():
    count = int(sys.argv[1])
    dice = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    outcomes = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="paceline damaged ") as folder:
        whole = {}
        for kind in ("tiny", "recurrent", "window"):
            path = os.path.join(folder, kind + ".gguf")
            subprocess.run([WRITE_GGUF, kind, path], check=True)
            with open(path, "rb") as file:
                whole[kind] = file.read()
        for number in range(count):
            data = whole[dice.choice(sorted(whole))]
            header = data.find(b"token_embd.weight") + 2000
            path = os.path.join(folder, "damaged.gguf")
            with open(path, "wb") as file:
                file.write(damage(data, header, dice))
            run = subprocess.run([PROGRAM, "check", "--target", path], capture_output=True, timeout=120, check=False)
            kept = run.returncode in (0, 12) and run.stdout and not run.stderr
            refused = run.returncode == 3 and not run.stdout and b"damaged.gguf" in run.stderr and run.stderr.count(b"\n") == 1
            if not kept and not refused:
                sys.exit(f"number {number}: exit {run.returncode}\n{run.stdout[:2000]!r}\n{run.stderr[:2000]!r}")
            by_signal = b"broke off" in run.stderr
            if by_signal and outcomes["3 (the child broke off)"] < 3:
                print(run.stderr.decode(errors="replace"), end="", file=sys.stderr)
            by_child = by_signal or b"cannot be used" in run.stderr
            outcomes[f"{run.returncode}" + (" (the child broke off)" if by_signal else " (child)" if by_child else "")] += 1
    print(dict(outcomes))


main()
