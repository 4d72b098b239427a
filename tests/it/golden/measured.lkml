randwrite.fio: direct=1 against direct=0
run 7 - 2026-03-01 12:00 UTC - 12 rounds - 96 trials (16 min 38 s) -
engine native 0.1.0 - assay 0.1.0 - delta 2 %

4 comparisons: 1 faster by more than delta, 1 slower by more than delta,
1 without difference beyond delta, 1 undecided
  bs=4k: direct=1 is slower than direct=0 by more than 2 %: write.bw
    -31.0 % [-32.4, -29.5], 12 rounds
  bs=16k: no difference beyond 2 % between direct=1 and direct=0:
    write.bw +0.4 % [-0.5, +1.2], 12 rounds
  bs=64k: undecided whether direct=1 differs from direct=0: write.bw
    -1.3 % [-9.2, +7.2], 11 rounds; about 619 rounds would probably show
    that nothing differs beyond 2 % (--rounds 619) [1]
  bs=1m: direct=1 is faster than direct=0 by more than 2 %: write.bw
    +21.6 % [+19.2, +24.1], 12 rounds

intervals: 95 % for all 4 rows together; delta: the smallest difference
  that matters

AVERAGES, direct=0
          WRITE               CPU
bs    KB/s  IOPS msec   usr    sys    csw
4k  115525 28881 2270  9.11 136.49 259.98
16k 202879 12680 1292 15.86 234.49 260.27
64k 371227  5800  709 29.60 422.35 260.62
1m  694196  2712  378 57.24 813.62 258.97

AVERAGES, direct=1
          WRITE                CPU
bs    KB/s  IOPS msec   usr    sys      csw
4k   79740 19935 3289  6.61  58.30 65761.74
16k 203590 12724 1288 16.32 144.34 65480.73
64k 366981  5734  717 29.46 269.65 65749.16
1m  844472  3299  311 67.71 612.91 65814.47

% DIFFERENCE, direct=0 -> direct=1
        WRITE               CPU
bs  KB/s IOPS msec    usr    sys      csw
4k   -31  -31   45 -27.50 -57.28 25194.89
16k    0    0    0   2.91 -38.44 25058.44
64k   -1   -1    1  -0.47 -36.15 25128.01
1m    22   22  -18  18.30 -24.67 25313.85

STANDARD DEVIATION in %, direct=0
        WRITE           CPU
bs  KB/s IOPS msec  usr  sys  csw
4k     2    2    2 7.98 5.59 0.98
16k    1    1    1 6.97 5.37 1.16
64k    6    6    6 9.38 8.18 0.67
1m     3    3    3 9.47 6.24 1.30

STANDARD DEVIATION in %, direct=1
        WRITE            CPU
bs  KB/s IOPS msec   usr  sys  csw
4k     2    2    2  7.96 3.50 0.87
16k    1    1    1  6.61 5.00 1.26
64k    7    7    6 12.41 8.12 1.05
1m     3    3    3 11.78 4.49 1.21

Differences are of means. KB: 1024 bytes. usr and sys are CPU time in %
of the job's run time.

18 exploratory comparisons differ clearly; --verbose lists them
10 other comparisons show no clear difference; --all-metrics lists them

[1] the typical trial and the mean disagree: -1.3 % against
    -1.1 % [-9.4, +7.2] (95 % by itself)

notes
- a virtual disk answers for the device: its host's page cache may hold
  what was written
- noise floor (A/A run 5): write.bw of direct=0, bs=4k against itself
  spreads by 1.1 % from round to round (0.79 % to 1.81 %, 2 A/A runs
  together), interval +/- 0.89 %; the smallest effect that 30 rounds
  would show in one comparison alone is 0.76 %; 1 of 12 A/A runs claimed
  a difference (at most 5 % should; binomial p = 0.460)

undeclared differences between the arms
- queue.scheduler: mq-deadline for direct=0; none for direct=1

trials that do not count
- 1 trial of direct=0, bs=64k failed (round 2): write to /mnt/the
  disk/w.0.0: no space left on device (ENOSPC), 4096 bytes missing
  $ assay agent < request.json
  | job w: 61234 of 65536 I/Os
  | write: No space left on device

host
  cpu.model AMD EPYC 7B13 64-Core Processor - cpu.count 2 - cpu.governor
  performance - cpu.boost on - memory.total 8.00 GiB - virt virtual
  machine - kernel.release 6.12.9-amd64 - device.kind virtio -
  queue.scheduler mq-deadline | none - queue.write_cache write back -
  fs.type ext4 - mount.options rw,relatime,errors=remount-ro - io_uring
  usable

to repeat it (seed 42)
  assay run randwrite.fio --vary 'direct=0,1' --vary \
    'bs=4k,16k,64k,1m' --directory '/mnt/the disk'
  with this job:
    [global]
    ioengine=psync
    rw=randwrite
    size=256m
    end_fsync=1

    [w]
    numjobs=1
