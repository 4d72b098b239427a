//! Pictures of effects.

use super::*;
use crate::analyse::Verdict;
use crate::report::picture::palette::hex;
use crate::report::section_tests::made_up;
use crate::report::words::NBSP;

#[test]
fn on_a_phone_no_line_runs_through_the_words_of_a_row() {
    let c = made_up().1.comparisons.remove(0);
    let drawn = |label: &str, form| {
        let rows = [(&c, label.to_owned())];
        forest(&rows, form).unwrap().svg
    };
    let (narrow, wide) = (drawn("bs=4k", Form::Narrow), drawn("bs=4k", Form::Wide));
    assert!(!wide.contains(&hex(PAPER)), "{wide}");
    assert!(narrow.contains(&hex(PAPER)), "{narrow}");
}

#[test]
fn on_a_phone_a_long_label_has_a_line_of_its_own() {
    let c = made_up().1.comparisons.remove(0);
    let label = "bs=4k fsync=0 rw=randwrite numjobs=16";
    let svg = forest(&[(&c, label.to_owned())], Form::Narrow).unwrap().svg;
    assert!(svg.contains(label), "{svg}");
}

#[test]
fn an_interval_that_is_cut_has_an_arrow_and_no_end() {
    let mut c = made_up().1.comparisons.remove(0);
    let mut drawn = |low: f64, high: f64| {
        c.effect = Some(Interval { estimate: 0.005, low, high });
        let picture = forest(&[(&c, "row".to_owned())], Form::Wide).unwrap();
        // Ends and arrows are the lines of the bar's colour that are not along it: an arrow has three points.
        let points =
            |line: &str| Some(line.split("points=\"").nth(1)?.split('"').next()?.split_whitespace().count());
        let arrows = picture.svg.lines().filter(|line| line.starts_with("<polyline")).filter_map(points);
        (arrows.filter(|points| *points == 3).count(), picture.caption.contains("An arrow"))
    };
    assert_eq!(drawn(-0.14, 0.17), (0, false));
    assert_eq!(drawn(-0.20, 0.25), (2, true));
    assert_eq!(drawn(-0.10, f64::INFINITY), (1, true));
}

#[test]
fn a_long_label_is_whole_on_a_wide_page_too() {
    let c = made_up().1.comparisons.remove(0);
    let label = "does fs=btrfs against xfs depend on mount=noatime against default?";
    let svg = forest(&[(&c, label.to_owned())], Form::Wide).unwrap().svg;
    assert!(svg.contains(label) && svg.contains(&hex(PAPER)), "{svg}");
}

#[test]
fn a_row_of_which_nothing_is_known_squeezes_no_other() {
    let (known, mut wild) = (made_up().1.comparisons.remove(0), made_up().1.comparisons.remove(0));
    wild.effect = Some(Interval { estimate: 1e6, low: -0.999_99, high: 1e9 });
    wild.verdict = Verdict::Undecided { rounds_to_claim: None, rounds_for_no_difference: None };
    let drawn = |rows: &[(&Comparison, String)]| forest(rows, Form::Wide).unwrap();
    let alone = drawn(&[(&known, "row".to_owned())]).svg;
    let both = drawn(&[(&known, "row".to_owned()), (&wild, "wild".to_owned())]);
    let length = |svg: &str| {
        let (low, high, _) = TONES.iter().flat_map(|tone| across(svg, *tone)).next().unwrap();
        high - low
    };
    assert!(length(&both.svg) * 8 > length(&alone), "{} {}", length(&both.svg), length(&alone));
    assert!(both.caption.contains("An arrow"), "{}", both.caption);
    assert_eq!(both.svg.matches("<circle").count(), 1, "no dot where it is not");
}

#[test]
fn far_ticks_are_factors() {
    assert_eq!(
        [-50.0, 0.0, 2.5, 400.0, 900.0, 99_900.0].map(tick_text),
        ["−50 %", "0 %", "+2.5 %", "+400 %", "×10", "×1000"]
    );
}

/// Comparisons of effects from none to large, in noise from little to much.
fn of_all_kinds() -> Vec<Comparison> {
    let (run, _) = made_up();
    let made = |effect: f64, noise: f64| {
        let mut run = run.clone();
        for (at, trial) in run.trials.iter_mut().enumerate() {
            let wave = ((at * at * 7 + at) % 11) as f64 / 11.0 - 0.5;
            let moved = if trial.cell == 1 { effect } else { 0.0 };
            trial.values[0].1 = 100.0 * (moved + noise * wave).exp();
        }
        crate::analyse::analyse(&run, &crate::analyse::Options::default()).comparisons.remove(0)
    };
    let effects = [-0.4, -0.1, -0.03, -0.005, 0.0, 0.005, 0.03, 0.1, 0.4];
    effects.iter().flat_map(|effect| [0.001, 0.02, 0.3].map(|noise| made(*effect, noise))).collect()
}

/// The ends of the horizontal lines of this colour in this SVG, and their height, in their order.
fn across(svg: &str, colour: RGBColor) -> Vec<(i32, i32, i32)> {
    let wanted = format!("stroke=\"{}\"", hex(colour));
    let drawn = svg.lines().filter(|line| line.starts_with("<polyline") && line.contains(&wanted));
    let ends = |line: &str| {
        let points = line.split("points=\"").nth(1)?.split('"').next()?;
        let numbers: Vec<i32> = points.split([' ', ',']).filter_map(|number| number.parse().ok()).collect();
        let [x, y, to_x, to_y] = numbers[..] else { return None };
        (y == to_y).then_some((x, to_x, y))
    };
    drawn.filter_map(ends).collect()
}

#[test]
fn each_row_has_the_band_of_its_own_delta() {
    let all = of_all_kinds();
    let mut rows: Vec<(Comparison, String)> =
        all.iter().take(3).map(|c| (c.clone(), "row".to_owned())).collect();
    let drawn = |rows: &[(Comparison, String)]| {
        let rows: Vec<(&Comparison, String)> = rows.iter().map(|(c, label)| (c, label.clone())).collect();
        forest(&rows, Form::Wide).unwrap()
    };
    let bands = |picture: &Picture| {
        let band = format!("fill=\"{}\"", hex(BAND));
        picture.svg.lines().filter(|line| line.contains("<rect") && line.contains(&band)).count()
    };
    let one = drawn(&rows);
    assert_eq!(bands(&one), 1);
    assert!(one.caption.replace(NBSP, " ").contains("±δ = 2 %:"), "{}", one.caption);
    rows[2].0.delta = 0.1;
    let two = drawn(&rows);
    assert_eq!(bands(&two), 2);
    assert!(two.caption.replace(NBSP, " ").contains("±δ of each row, 2 % to 10 %:"), "{}", two.caption);
}

#[test]
fn a_bar_and_its_colour_say_what_the_verdict_says() {
    let all = of_all_kinds();
    let [mut better, mut worse, mut same, mut unclear] = [0; 4];
    for comparison in &all {
        let svg = forest(&[(comparison, "row".to_owned())], Form::Wide).unwrap().svg;
        let axis = format!("stroke=\"{}\"", hex(AXIS));
        let axis = svg.lines().find(|line| line.contains(&axis)).unwrap();
        let zero: i32 = axis.split("points=\"").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
        let bars = TONES.map(|tone| across(&svg, tone));
        let [is_better, is_worse, is_same, is_unclear] = bars.each_ref().map(|bars| !bars.is_empty());
        let (low, high, _) = bars.into_iter().flatten().next().unwrap();
        match &comparison.verdict {
            Verdict::Faster { .. } => {
                better += 1;
                assert!(is_better && low > zero, "{low} {zero}: {comparison:?}");
            }
            Verdict::Slower { .. } => {
                worse += 1;
                assert!(is_worse && high < zero, "{high} {zero}: {comparison:?}");
            }
            Verdict::NoDifference { .. } => {
                same += 1;
                assert!(is_same, "{comparison:?}");
            }
            Verdict::Undecided { .. } => {
                unclear += 1;
                assert!(is_unclear && low <= zero && high >= zero, "{low} {high} {zero}: {comparison:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(better > 2 && worse > 2 && same > 1 && unclear > 2, "{better} {worse} {same} {unclear}");
}
