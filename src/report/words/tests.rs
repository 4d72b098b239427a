//! How arms, changes and intervals are written.

use super::*;

#[test]
fn percents_carry_their_sign_and_no_negative_zero() {
    assert_eq!(percent(-0.312, 1), "−31.2");
    assert_eq!(percent(0.0004, 1), "+0.0".trim_start_matches('+'));
    assert_eq!(percent(12.9879, 1), "+1299");
    assert_eq!(percent(f64::NAN, 1), "-");
    assert_eq!(percent(5000.0, 1), "+5.0e5");
}

#[test]
fn a_large_change_is_a_factor() {
    let times = |ratio| change(ratio, 1).replace(NBSP, " ");
    assert_eq!([8.9, 9.0, 312.8, 13.0, 2e6].map(times), ["+890.0 %", "×10.0", "×314", "×14.0", "×2.0e6"]);
    assert_eq!(times(f64::INFINITY), "+∞ %");
    let of = |estimate, low, high| interval(Some(Interval { estimate, low, high })).replace(NBSP, " ");
    assert_eq!(of(312.8, 309.84, 315.78), "[×311, ×317]");
    assert_eq!(of(11.0, -0.5, 40.0), "[×0.50, ×41.0]", "the ends are as the estimate");
    assert_eq!(of(11.0, 0.003, 40.0), "[×1.0030, ×41.0]", "0 is excluded");
    assert_eq!(of(4.0, 3.0, 20.0), "[+300.0, +2000]");
}

#[test]
fn few_of_something_are_counted_for_many_operations() {
    let few = Scale { divisor: 1e-3, symbol: "per 1000 ops".to_owned(), decimals: 3 };
    assert_eq!(unit_words(&few, &Unit::Count), " per 1000 ops");
}

#[test]
fn a_file_below_sys_is_called_by_its_last_name_or_by_its_levels() {
    let run = |factor: &str, levels: [&str; 2]| {
        let mut run = super::super::section_tests::made_up().0;
        let levels = levels.map(str::to_owned).to_vec();
        run.design.factors = vec![Factor::new(factor, levels)];
        run
    };
    let words = run("sysfs:queue/write_cache", ["write through", "write back"]);
    let names = Names::new(&words, "sysfs:queue/write_cache");
    assert_eq!(names.arm("write back"), "write back");
    assert_eq!(
        names.against("write back", "write through"),
        "write back against write through (write_cache)"
    );
    let numbers = run("sysfs:queue/rq_affinity", ["1", "2"]);
    let names = Names::new(&numbers, "sysfs:queue/rq_affinity");
    assert_eq!(names.arm("2"), "rq_affinity=2");
    assert_eq!(names.against("2", "1"), "rq_affinity=2 against rq_affinity=1");
}

#[test]
fn a_row_has_the_names_of_its_factors_also_where_room_is_short() {
    let levels = [("bs", "4k"), ("sysfs:queue/scheduler", "none")];
    let levels = levels.map(|(factor, level)| (factor.to_owned(), level.to_owned())).to_vec();
    let row = RowKey { levels, job: "w".to_owned() };
    let names = Names::of_factor("direct");
    assert_eq!(names.row(&row), "bs=4k, scheduler=none, job w");
    assert_eq!(names.short_row(&row), "bs=4k scheduler=none job w");
}

#[test]
fn what_all_rows_have_stands_in_the_head_only() {
    let mut run = super::super::section_tests::made_up().0;
    run.design.factors.push(Factor::new("fs", vec!["xfs".to_owned()]));
    let names = Names::new(&run, "cache");
    let row = |levels: &[(&str, &str)]| RowKey {
        levels: levels.iter().map(|(factor, level)| (factor.to_string(), level.to_string())).collect(),
        job: String::new(),
    };
    assert_eq!(names.before(&row(&[("fs", "xfs"), ("bs", "4k")])), "bs=4k: ");
    assert_eq!(names.before(&row(&[("fs", "xfs")])), "");
    assert_eq!(in_all_rows(&run, "cache").as_deref(), Some("fs=xfs"));
    assert_eq!(in_all_rows(&run, "fs"), None, "arms have it in their names");
}

#[test]
fn deltas_have_no_needless_digits() {
    assert_eq!(plain_percent(0.02), "2\u{a0}%");
    assert_eq!(plain_percent(0.005), "0.5\u{a0}%");
    assert_eq!(plain_percent(0.0), "0\u{a0}%");
    assert_eq!(plain_percent(0.10), "10\u{a0}%");
}

#[test]
fn an_end_beside_zero_does_not_read_like_zero() {
    let of = |low, high| interval(Some(Interval { estimate: f64::midpoint(low, high), low, high }));
    assert_eq!(of(1e-9, 0.03), "[>0.0,\u{a0}+3.0]", "a difference is claimed");
    assert_eq!(of(-0.03, -1e-9), "[−3.0,\u{a0}<0.0]");
    assert_eq!(of(-1e-9, 0.03), "[0.0,\u{a0}+3.0]", "it holds 0");
    assert_eq!(of(0.001, 0.03), "[+0.1,\u{a0}+3.0]");
}

#[test]
fn an_end_that_is_not_delta_does_not_read_like_delta() {
    let digits = |end: f64| percent(end, decimals_beside(0.02, end, 1));
    assert_eq!([0.0196, 0.0204, 0.019_98, 0.02].map(digits), ["+1.96", "+2.04", "+1.998", "+2.0"]);
    assert_eq!([-0.0196, -0.0204].map(digits), ["−1.96", "−2.04"]);
    assert_eq!(digits(-0.019_65), "−2.0", "beyond 1/1.02, where no digits read like that");
    assert_eq!([0.013, -0.5, 0.031].map(digits), ["+1.3", "−50.0", "+3.1"]);
}

#[test]
fn ends_that_say_nothing_are_no_numbers() {
    let of = |estimate, low, high| interval(Some(Interval { estimate, low, high })).replace(NBSP, " ");
    assert_eq!(of(0.4, -0.999_999, 1.3e7), "[<−99.9, >+9900]");
    assert_eq!(of(0.4, -1.0, 11.5), "[−100.0, +1150]");
    assert_eq!(of(0.4, -0.5, 8.9), "[−50.0, +890.0]");
    assert_eq!(of(20.0, -0.999, 1e3), "[<×0.01, ×1001]");
}

#[test]
fn narrow_intervals_get_two_decimals() {
    let narrow = Interval { estimate: 0.001, low: 0.0005, high: 0.0015 };
    assert_eq!(interval(Some(narrow)), "[+0.05,\u{a0}+0.15]");
}
