#!/usr/bin/env python3
"""Makes data.csv and the answers of scipy, of an enumeration, of ministat and of benchstat.

Run in this directory; the answers of R come from make.R, which reads data.csv:

    apt-get install python3-scipy r-base-core r-cran-coin ministat
    go install golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
    /usr/bin/python3 make.py && Rscript make.R

data.csv: set, arm (a or b), value. Sets whose name begins with "paired" have as many values in a as in b, in time
order. Each value is a multiple of 1/4096, so that differences and their means are exact in binary: a tie is a tie.
Answers: set, quantity, value; NA where the method has no answer (an interval that n is too small for).
The quantities are described in tests/it/oracles.rs, which compares them with assay's own.
"""
import csv
import itertools
import math
import random
import re
import subprocess
import tempfile
from fractions import Fraction
from pathlib import Path

from scipy import stats

ALPHA = 0.05
# Most ways to divide the values that the enumeration goes through.
MOST_DIVISIONS = 200_000


def grid(value, step=4096):
    return round(value * step) / step


class Source:
    """Noise of several shapes, from uniform numbers only: they are the same in every version of Python."""

    def __init__(self, seed):
        self.random = random.Random(seed).random

    def normal(self):
        return math.sqrt(-2 * math.log(1 - self.random())) * math.cos(2 * math.pi * self.random())

    def cauchy(self):
        return math.tan(math.pi * (self.random() - 0.5))

    def lognormal(self):
        return math.exp(self.normal())

    def bimodal(self):
        return (3 if self.random() < 0.4 else 0) + 0.3 * self.normal()


def make_data():
    """30 sets: name -> (a, b)."""
    sets = {}

    def paired(name, n, noise, effect=0.0, step=4096):
        source = Source(f"{name}-{n}")
        shape = getattr(source, noise)
        level = [100 + 4 * source.normal() for _ in range(n)]
        a = [grid(v + 2 * shape(), step) for v in level]
        b = [grid(v + effect + 2 * shape(), step) for v in level]
        sets[f"paired-{name}-{n}"] = (a, b)

    def unpaired(name, n, m, noise, effect=0.0, step=4096):
        source = Source(f"{name}-{n}x{m}")
        shape = getattr(source, noise)
        a = [grid(100 + 2 * shape(), step) for _ in range(n)]
        b = [grid(100 + effect + 2 * shape(), step) for _ in range(m)]
        sets[f"unpaired-{name}-{n}x{m}"] = (a, b)

    for n in (4, 5, 6, 8, 12, 20, 50):
        paired("normal", n, "normal", effect=1.5)
    paired("no-effect", 10, "normal")
    paired("ties", 10, "normal", effect=2, step=1)
    paired("ties", 30, "normal", effect=1, step=1)
    paired("halves", 16, "normal", effect=1, step=2)
    paired("skewed", 15, "lognormal", effect=3)
    paired("lognormal", 40, "lognormal", effect=1)
    paired("cauchy", 25, "cauchy", effect=2)
    paired("bimodal", 14, "bimodal", effect=1)
    source = Source("zeros")
    a = [grid(100 + source.normal()) for _ in range(9)]
    sets["paired-zeros-9"] = (a, [v + d for v, d in zip(a, (0, 1.5, 0, 2.25, -0.5, 3, 0, 1.75, 2.5))])
    a = [grid(100 + source.normal()) for _ in range(7)]
    sets["paired-constant-7"] = (a, [v + 2 for v in a])
    a = [grid(100 + source.normal()) for _ in range(20)]
    b = [v + grid(0.25 * i + source.normal()) for i, v in enumerate(a)]
    b[4] += 90
    b[17] -= 40
    sets["paired-trend-outliers-20"] = (a, b)

    unpaired("normal", 3, 3, "normal", effect=6)
    unpaired("normal", 4, 7, "normal", effect=3)
    unpaired("normal", 5, 5, "normal", effect=9)
    unpaired("normal", 50, 50, "normal", effect=0.5)
    unpaired("ties", 10, 10, "normal", effect=2, step=1)
    unpaired("ties", 30, 30, "normal", effect=1, step=1)
    unpaired("lognormal", 7, 12, "lognormal", effect=2)
    unpaired("skewed", 6, 40, "lognormal", effect=1, step=4)
    unpaired("ties", 5, 9, "normal", effect=-3, step=1)
    unpaired("cauchy", 15, 15, "cauchy", effect=1)
    unpaired("cauchy", 20, 9, "cauchy", effect=3, step=2)
    sets["unpaired-one-value-8x8"] = ([100.0] * 8, [100.0] * 8)
    assert len(sets) == 30
    return sets


def differences(a, b):
    return [y - x for x, y in zip(a, b)]


def untied(values):
    return len(set(values)) == len(values)


def answers_of_scipy(sets):
    for name, (a, b) in sets.items():
        if untied(a + b):
            test = stats.mannwhitneyu(a, b, method="exact")
            yield name, "mann_whitney_u", float(test.statistic)
            yield name, "mann_whitney_p", test.pvalue
        if len(set(a + b)) > 1:
            test = stats.ttest_ind(b, a, equal_var=False)
            yield name, "welch_t", test.statistic
            yield name, "welch_p", test.pvalue
        if not name.startswith("paired"):
            continue
        d = differences(a, b)
        if 0 not in d and untied([abs(v) for v in d]):
            yield name, "signed_rank_p", stats.wilcoxon(d, method="exact").pvalue
        if untied(d):
            yield name, "mann_kendall_p", stats.kendalltau(range(len(d)), d, method="exact").pvalue
        if len(set(d)) > 1:
            test = stats.ttest_rel(b, a)
            low, high = test.confidence_interval(1 - ALPHA)
            yield name, "paired_t", test.statistic
            yield name, "paired_p", test.pvalue
            yield name, "paired_low", low
            yield name, "paired_high", high
        yield name, "theil_sen", float(stats.theilslopes(d).slope)
    for trials, claims, rate in [(40, 3, 0.05), (40, 5, 0.05), (10, 0, 0.05), (200, 17, 0.05), (30, 21, 0.5)]:
        p = stats.binomtest(claims, trials, rate, alternative="greater").pvalue
        yield "binomial", f"{trials} {claims} {rate}", p


def mann_whitney_by_enumeration(a, b):
    """Twice the smaller tail of U over every division of the values into two groups of these sizes."""
    def twice_u(x, y):
        return sum(2 * (i > j) + (i == j) for i in x for j in y)

    pooled = a + b
    seen = twice_u(a, b)
    low = high = ways = 0
    for chosen in itertools.combinations(range(len(pooled)), len(a)):
        inside = set(chosen)
        x = [pooled[i] for i in chosen]
        y = [v for i, v in enumerate(pooled) if i not in inside]
        u = twice_u(x, y)
        low += u <= seen
        high += u >= seen
        ways += 1
    return min(Fraction(1), 2 * Fraction(min(low, high), ways))


def signed_rank_by_enumeration(d):
    """P(min(W+, W-) <= k) of ranks 1..n with fair signs, k the smaller count of Walsh averages on a closed side."""
    values = [Fraction(v) for v in d]
    walsh = [x + y for i, x in enumerate(values) for y in values[i:]]
    k = min(sum(w <= 0 for w in walsh), sum(w >= 0 for w in walsh))
    ways = {0: 1}
    for rank in range(1, len(d) + 1):
        new = {}
        for total, count in ways.items():
            for reached in (total, total + rank):
                new[reached] = new.get(reached, 0) + count
        ways = new
    tail = sum(count for total, count in ways.items() if total <= k)
    return min(Fraction(1), Fraction(2 * tail, 2 ** len(d)))


def answers_by_enumeration(sets):
    for name, (a, b) in sets.items():
        if math.comb(len(a) + len(b), len(a)) <= MOST_DIVISIONS:
            yield name, "mann_whitney_p", float(mann_whitney_by_enumeration(a, b))
        if name.startswith("paired"):
            yield name, "signed_rank_p", float(signed_rank_by_enumeration(differences(a, b)))


def written(values):
    return "".join(f"{v!r}\n" for v in values)


def answers_of_ministat(sets, directory):
    for name, (a, b) in sets.items():
        files = [directory / "a", directory / "b"]
        for path, values in zip(files, (a, b)):
            path.write_text(written(values))
        text = subprocess.run(["ministat", "-A", "-c", "95", *files], capture_output=True, text=True, check=True).stdout
        for mark, arm in (("x", "a"), ("+", "b")):
            row = re.search(rf"^{re.escape(mark)} +(\d.*)$", text, re.M)
            if row is None:
                continue
            fields = row.group(1).split()
            yield name, f"upper_median_{arm}", fields[3]
            yield name, f"mean_{arm}", fields[4]
            yield name, f"stddev_{arm}", fields[5]
        found = re.search(r"^\s+(\S+) \+/- (\S+)$", text, re.M)
        if found:
            yield name, "student_difference", found.group(1)
            yield name, "student_half_width", found.group(2)
        elif "No difference proven" in text:
            yield name, "student_difference", "NA"


def answers_of_benchstat(sets, directory):
    files = [directory / "a.txt", directory / "b.txt"]
    for path, arm in zip(files, (0, 1)):
        lines = [f"Benchmark{name} 1 {v!r} x\n" for name, arms in sets.items() for v in arms[arm]]
        path.write_text("".join(lines))
    command = ["benchstat", "-format", "csv", *files]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for row in csv.reader(text.splitlines()):
        name = row[0] if row else ""
        if name not in sets:
            continue
        yield name, "median_a", row[1]
        yield name, "median_b", row[3]
        if row[5] != "~":
            yield name, "median_change_percent", row[5].rstrip("%")
        yield name, "mann_whitney_p", re.match(r"p=(\S+)", row[6]).group(1)


def write(path, header, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for row in rows:
            writer.writerow([f"{v:.17g}" if isinstance(v, float) else v for v in row])


def main():
    sets = make_data()
    data = ((name, arm, v) for name, arms in sets.items() for arm, values in zip("ab", arms) for v in values)
    write("data.csv", ("set", "arm", "value"), data)
    answer = ("set", "quantity", "value")
    write("scipy.csv", answer, answers_of_scipy(sets))
    write("enumeration.csv", answer, answers_by_enumeration(sets))
    with tempfile.TemporaryDirectory() as directory:
        write("ministat.csv", answer, answers_of_ministat(sets, Path(directory)))
        write("benchstat.csv", answer, answers_of_benchstat(sets, Path(directory)))


main()
