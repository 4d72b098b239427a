bdev-fio-averages.csv: kernel=3.6.0-rc5.mikulas.3+ against
  kernel=3.6.0-rc5+
imported from CSV - 12 trials - assay 0.1.0 - delta 2 %

  6 comparisons have too few repeats for a verdict (1 of the 4 that an
    interval needs); the tables have what there is

AVERAGES, kernel=3.6.0-rc5+
                  READ                WRITE                CPU
Job Name     KB/s   IOPS  msec   KB/s   IOPS  msec   usr   sys     csw
write1          0      0     0 748522 187130 44864 16.34 60.65 3799440
read1      690615 172653 48602      0      0     0 13.45 61.42 4044720
randwrite1      0      0     0 716406 179101 46839 29.03 52.79 3151140
randread1  683466 170866 49108      0      0     0 25.92 54.67 3081610
readwrite1 377518  94379 44450 377645  94410 44450 15.49 64.32 3139240
randrw1    355815  88953 47178 355733  88933 47178 27.96 54.24 2944570

AVERAGES, kernel=3.6.0-rc5.mikulas.3+
                   READ                WRITE                CPU
Job Name      KB/s   IOPS  msec   KB/s   IOPS  msec   usr   sys     csw
write1           0      0     0 870892 217723 38528 17.83 41.57 1697870
read1      1430164 357541 23462      0      0     0 14.41 56.00  241315
randwrite1       0      0     0 759789 189947 44163 31.48 36.36 1256040
randread1  1043830 260958 32146      0      0     0 31.89 44.39  185032
readwrite1  692567 173141 24226 692489 173122 24226 18.65 53.64  311255
randrw1     501208 125302 33469 501446 125361 33469 35.40 41.61  246391

% DIFFERENCE, kernel=3.6.0-rc5+ -> kernel=3.6.0-rc5.mikulas.3+ (below 5
  % printed as 0)
                READ          WRITE              CPU
Job Name   KB/s IOPS msec KB/s IOPS msec   usr    sys    csw
write1        0    0    0   16   16  -14  9.12 -31.46 -55.31
read1       107  107  -51    0    0    0  7.14  -8.82 -94.03
randwrite1    0    0    0    6    6   -5  8.44 -31.12 -60.14
randread1    52   52  -34    0    0    0 23.03 -18.80 -94.00
readwrite1   83   83  -45   83   83  -45 20.40 -16.60 -90.09
randrw1      40   40  -29   40   40  -29 26.61 -23.29 -91.63

Differences are of means; those in whole numbers are cut off toward 0,
not rounded.

40 other comparisons cannot be judged; --all-metrics lists them
