dbench: 5.18-patched against 5.18-vanilla
2026-03-01 12:00 UTC - imported from CSV - 14 trials (2 min 26 s) -
assay 0.1.0 - delta 2 %

  7 comparisons have too few repeats for a verdict (1 of the 4 that an
    interval needs); the tables have what there is

AVERAGES, completion in ms, lower is better
             5.18-vanilla   5.18-patched
clients=1            71.2           64.9
clients=2            93.0           84.8
clients=4           150.5          137.5
clients=8           252.5          242.2
clients=16          454.1          439.1
clients=32          835.2          829.7
clients=64         1740.6         1686.7

% DIFFERENCE, 5.18-vanilla -> 5.18-patched
             5.18-patched
clients=1           -8.82
clients=2           -8.85
clients=4           -8.66
clients=8           -4.07
clients=16          -3.31
clients=32          -0.66
clients=64          -3.09
