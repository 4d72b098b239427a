nasty <b>&amp; friends: 4 candidates against
  kernel_image_under_test=<script>alert(1)</script>
run 7 - 2026-03-01 12:00 UTC - 3 rounds - 45 trials (7 min 48 s) -
engine command - assay 0.1.0 - delta 2 %

8 comparisons: 7 with too few repeats, 1 not measured
  mode=a, job a job with blanks:
    kernel_image_under_test=vmlinuz-6.12.0-rc5-with-a-name-that-nobody-w
    ould-want-to-read-aloud+ cannot be compared with
    kernel_image_under_test=<script>alert(1)</script> on
    a.metric.whose.name.goes.on.and.on.and.on.ms: no trial of the
    candidate has a value [1] [2]
  mode=a, job a job with blanks: too few repeats to judge
    kernel_image_under_test=? [31m|*_`x`_*| against
    kernel_image_under_test=<script>alert(1)</script>:
    a.metric.whose.name.goes.on.and.on.and.on.ms 0.0 %, 3 repeats each
    (3 of the 4 that an interval needs) [1] [2]
  mode=a, job a job with blanks: too few repeats to judge
    kernel_image_under_test=-1 against
    kernel_image_under_test=<script>alert(1)</script>:
    a.metric.whose.name.goes.on.and.on.and.on.ms -200.0 %, 3 repeats
    each (3 of the 4 that an interval needs) [1] [2]
  mode=a, job a job with blanks: too few repeats to judge
    kernel_image_under_test=zero against
    kernel_image_under_test=<script>alert(1)</script>:
    a.metric.whose.name.goes.on.and.on.and.on.ms -100.0 %, 3 repeats
    each (3 of the 4 that an interval needs) [1] [2]
  4 comparisons have too few repeats for a verdict (2 of the 4 that an
    interval needs); the tables have what there is

AVERAGES, a.metric.whose.name.goes.on.and.on.and.on.ms in furlongs per
  fortnight, lower is better
                           <scrip~script> vmlinu~-aloud+ ? [31m~_`x`_*|
mode=a, job ~b with blanks       1.235e14       1.235e14       1.235e14
mode=the-row~b with blanks       1.235e14       1.235e14       1.235e14
                                       -1           zero
mode=a, job ~b with blanks      -1.235e14              0
mode=the-row~b with blanks      -1.235e14              0

% DIFFERENCE, kernel_image_under_test=<script>alert(1)</script> -> each
  (below 1 % printed as 0)
                           vmlinu~-aloud+ ? [31m~_`x`_*|             -1
mode=a, job ~b with blanks           0.00           0.00        -200.00
mode=the-row~b with blanks              -              -              -
                                     zero
mode=a, job ~b with blanks        -100.00
mode=the-row~b with blanks              -

STANDARD DEVIATION in %, a.metric.whose.name.goes.on.and.on.and.on.ms
                           <scrip~script> vmlinu~-aloud+ ? [31m~_`x`_*|
mode=a, job ~b with blanks           0.00           0.00           0.00
mode=the-row~b with blanks           0.00           0.00           0.00
                                       -1           zero
mode=a, job ~b with blanks           0.00              -
mode=the-row~b with blanks           0.00              -

AVERAGES, ctx in millions, lower is better
                           <scrip~script> vmlinu~-aloud+ ? [31m~_`x`_*|
mode=a, job ~b with blanks            0.0           30.0           60.0
mode=the-row~b with blanks           10.0           40.0           70.0
                                       -1           zero
mode=a, job ~b with blanks           90.0          120.0
mode=the-row~b with blanks          100.0          130.0

% DIFFERENCE, kernel_image_under_test=<script>alert(1)</script> -> each
  (below 1 % printed as 0)
                           vmlinu~-aloud+ ? [31m~_`x`_*|             -1
mode=a, job ~b with blanks              -              -              -
mode=the-row~b with blanks              -              -              -
                                     zero
mode=a, job ~b with blanks              -
mode=the-row~b with blanks              -

STANDARD DEVIATION in %, ctx
                           <scrip~script> vmlinu~-aloud+ ? [31m~_`x`_*|
mode=a, job ~b with blanks              -           0.00           0.00
mode=the-row~b with blanks           0.00           0.00           0.00
                                       -1           zero
mode=a, job ~b with blanks           0.00           0.00
mode=the-row~b with blanks           0.00           0.00

[1] needs at least 4 repeats for an interval, has 2 to 3: change of the
    mean only
[2] rounds left out by a rule fixed beforehand: 0 to 15 (steal over 5 %)

notes
- this run was interrupted: the verdict so far
- values of 0 or below have no ratio: judged by their differences;
  percent and delta are shares of the baseline's typical size
- noise floor unknown: the same command with --aa measures what shows
  here when nothing differs

undeclared differences between the arms
- kernel.cmdline:
  qqqqqqqqqqqqqqqqqqqqqqqqqqqqq..qqqqqqqqqqqqqqqqqqqqqqqqqqqqqq for
  kernel_image_under_test=<script>alert(1)</script>;
  qqqqqqqqqqqqqqqqqqqqqqqqqqqqq..qqqqqqqqqqqqqqqqqqqqqqqqqqqqqq for
  kernel_image_under_test=vmlinuz-6.12.0-rc5-with-a-name-that-nobody-wou
  ld-want-to-read-aloud+;
  qqqqqqqqqqqqqqqqqqqqqqqqqqqqq..qqqqqqqqqqqqqqqqqqqqqqqqqqqqqq for
  kernel_image_under_test=? [31m|*_`x`_*|;
  qqqqqqqqqqqqqqqqqqqqqqqqqqqqq..qqqqqqqqqqqqqqqqqqqqqqqqqqqqqq for
  kernel_image_under_test=-1;
  qqqqqqqqqqqqqqqqqqqqqqqqqqqqq..qqqqqqqqqqqqqqqqqqqqqqqqqqqqqq for
  kernel_image_under_test=zero

trials that do not count
- 3 trials of kernel_image_under_test=<script>alert(1)</script>,
  mode=na?ve & "quoted" failed (rounds 1, 2, 3):
  xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
  xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
  $ y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y \
      y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y \
      y y y y y y y y y y y y y y y
  | ?[31mred?[0m    tab
- 1 trial of kernel_image_under_test=<script>alert(1)</script>,
  mode=the-row-with-a-label-that-is-much-longer-than-any-column-of-any-t
  able-could-be skipped (round 2): io_uring is disabled here
  (kernel.io_uring_disabled = 2)

to repeat it (seed 42)
  assay run \
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx '$(rm -rf /)'
  with this job:
    [jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj\
    jjjjjjjjjjjjjjjjjjjjjjjj]
        filename=/dev/ppppppppppppppppppppppppppppppppppppppppppppppppp\
    ppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp\
    ppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp\
    ppppppppppppppppp
    ```
