#!/usr/bin/env python3
"""Makes N fio JSON files a side from one real output, its numbers varied: many-fio-results.py REAL.json OUT N

OUT/before and OUT/after get N files each; 'after' is 3 % faster. Every number that fio measured is varied by its
trial's own factor, so that the files stay consistent in themselves. Used to show that `assay compare` of 10,000
files ends in under 10 s and 500 MB.
"""

import json
import os
import random
import sys

MEASURED = {"bw_bytes", "bw", "iops", "runtime", "mean", "max", "min", "stddev", "job_runtime", "ctx"}
FASTER = {"bw_bytes", "bw", "iops"}


def vary(value, factor, key=""):
    if isinstance(value, dict):
        if key == "percentile":
            return {k: int(v / factor) for k, v in value.items()}
        return {k: vary(v, factor, k) for k, v in value.items()}
    if isinstance(value, list):
        return [vary(v, factor) for v in value]
    if key in MEASURED and isinstance(value, (int, float)):
        varied = value * factor if key in FASTER else value / factor
        return type(value)(varied)
    return value


def main():
    real, out, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with open(real) as file:
        text = file.read()
    document = json.loads(text[text.index("{"):])
    chance = random.Random(1)
    for side, effect in (("before", 1.0), ("after", 1.03)):
        os.makedirs(os.path.join(out, side), exist_ok=True)
        for index in range(count):
            trial = vary(document, effect * chance.lognormvariate(0, 0.03))
            trial["timestamp"] += index * 60
            trial["timestamp_ms"] = trial["timestamp"] * 1000
            with open(os.path.join(out, side, f"{index:05}.json"), "w") as file:
                json.dump(trial, file, indent=2)


main()
