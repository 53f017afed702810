#!/usr/bin/env python3
"""Decode rate of paceline's plain arm over llama-bench's, same file and threads, interleaved pairs.

Run with nothing else running:
  ./dev shell --test -- tools/measure/plain-against-llama-bench.py MODEL.gguf [--pairs 15]
Prints each pair, the geometric mean and its 95 % interval, and the share of paceline's wall time that lies
outside the runtime.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile

T_975 = {9: 2.262, 14: 2.145, 15: 2.131, 19: 2.093, 24: 2.064, 29: 2.045}
TOKENS = 96


def llama_bench(model: str, threads: int) -> float:
    command = ["llama-bench", "-m", model, "-p", "0", "-n", str(TOKENS), "-r", "1", "-t", str(threads), "-o", "json"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out)[0]["avg_ts"]


def paceline(program: str, model: str, threads: int, prompt: str) -> tuple[float, float]:
    """Decode rate (median of four plain samples) and the share of the time outside the runtime."""
    command = [program, "bench", "--target", model, "--control", "--fixture", prompt, "--max-tokens", str(TOKENS),
               "--runtime", "llama", "--threads", str(threads), "--baseline-runs", "2", "--format", "json", "-o", "-"]
    out = subprocess.run(command, capture_output=True, text=True)
    if out.returncode not in (0, 10, 11):
        sys.exit(f"paceline ended with {out.returncode}: {out.stderr}")
    rates, outside, inside = [], 0, 0
    for block in json.loads(out.stdout)["paceline"]["record"]["blocks"]:
        for sample in block["samples"]:
            verify = sum(sample["rounds"]["verify_ns"])
            decode = sample["elapsed_ns"] - sample["first_token_ns"]
            rates.append((len(sample["tokens"]) - 1) / decode * 1e9)
            inside += verify
            outside += decode - verify
    return statistics.median(rates), outside / (outside + inside)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--pairs", type=int, default=15, choices=[n + 1 for n in T_975])
    parser.add_argument("--program", default="build/release/bin/paceline")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    logs, shares = [], []
    with tempfile.TemporaryDirectory() as folder:
        prompt = os.path.join(folder, "prompt.json")
        with open(prompt, "w", encoding="utf-8") as file:
            json.dump({"prompt": "The history of the bicycle begins in the year"}, file)
        for pair in range(options.pairs):
            def ours() -> float:
                rate, share = paceline(options.program, options.model, options.threads, prompt)
                shares.append(share)
                return rate

            def theirs() -> float:
                return llama_bench(options.model, options.threads)

            if random.Random(pair).random() < 0.5:
                a, b = ours(), theirs()
            else:
                b, a = theirs(), ours()
            logs.append(math.log(a / b))
            print(f"pair {pair + 1:2}: paceline {a:7.2f} tok/s, llama-bench {b:7.2f} tok/s, ratio {a / b:.3f}", flush=True)
    mean, spread = statistics.mean(logs), statistics.stdev(logs)
    half = T_975[options.pairs - 1] * spread / math.sqrt(options.pairs)
    print(f"ratio {math.exp(mean):.3f} [{math.exp(mean - half):.3f}, {math.exp(mean + half):.3f}] over {options.pairs} pairs; "
          f"outside the runtime {100 * statistics.median(shares):.2f} % of decoding")


if __name__ == "__main__":
    main()
