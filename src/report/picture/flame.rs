//! Flame graphs: time by stack of functions, of one arm or of two arms together with their difference.
//!
//! Enters: the stacks of a pair. Leaves: a [`Picture`] that names each box to the pointer. As flamegraph.pl draws them
//! (brendangregg.com/flamegraphs.html): who calls is below, boxes of one level are sorted by name, so that two graphs can be laid side by side.
//! The difference is not drawn as there. A box is as wide as the time of both arms together, so that what only one of them has is seen, too,
//! and all boxes are coloured, also those of callers. It must not know where stacks come from.

use std::collections::BTreeMap;

use plotters::style::RGBColor;

use super::canvas::{fitting, px};
use super::palette::{self, GRID, INK, TONES, hex};
use super::{Form, Picture};
use crate::analyse::Stack;
use crate::report::html_text::escape;
use crate::report::layout::shorten;
use crate::report::verdict_words::Tone;
use crate::units::{Unit, format_number};

/// Height of a box.
const ROW: f64 = 18.0;
/// A narrower box is left out, with all above it.
const LEAST_WIDTH: f64 = 1.0;
const SIZE: f64 = 12.0;
/// Room at both sides of a name.
const MARGIN: f64 = 3.0;
/// Fewer letters than these are no name.
const FEWEST_LETTERS: usize = 4;
/// How much of its colour a box of one arm has, and at most one that differs: its name must be readable.
const PLAIN: f64 = 0.3;
const DEEPEST: f64 = 0.6;
/// Functions named to those who cannot see the picture.
const NAMED: usize = 5;

/// Two arms' stacks with what is said of them.
pub(in crate::report) struct FlameGraph<'a> {
    /// Stacks with their time in both arms.
    pub(in crate::report) stacks: &'a [Stack],
    /// What stands above it.
    pub(in crate::report) title: String,
    /// What the times are for: `an operation`.
    pub(in crate::report) one: &'static str,
    /// Both arms by their index.
    pub(in crate::report) arms: [usize; 2],
    /// The candidate as the reader knows it.
    pub(in crate::report) candidate: String,
}

/// Whose time is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) enum Flames {
    /// That of the baseline (0) or of the candidate (1).
    Of(usize),
    /// That of both, and by how much they differ.
    Difference,
}

impl Flames {
    /// What a box's width stands for.
    fn time(self, ns: [f64; 2]) -> f64 {
        match self {
            Flames::Of(arm) => ns[arm],
            Flames::Difference => ns[0] + ns[1],
        }
    }
}

impl FlameGraph<'_> {
    /// `None`: there is no time to draw.
    pub(in crate::report) fn drawn(&self, flames: Flames, form: Form) -> Option<Picture> {
        let root = Frame::of(self.stacks);
        let (whole, width) = (flames.time(root.ns), form.width());
        if !(whole.is_finite() && whole > 0.0) {
            return None;
        }
        let mut boxes = Vec::new();
        root.place("all", 0, 0.0, &|ns: [f64; 2]| flames.time(ns) * width / whole, &mut boxes);
        let levels = boxes.iter().map(|placed| placed.level + 1).max().unwrap_or(0);
        let height = ROW * levels as f64;
        let mut svg = format!(
            "<svg role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {} {}\" width=\"{width}\" height=\"{height}\">\n<title>{}</title>\n",
            escape(&self.label(flames)),
            px(width),
            px(height),
            escape(&self.title)
        );
        boxes.iter().for_each(|placed| self.paint(&mut svg, placed, flames, height));
        svg.push_str("</svg>\n");
        let (arms, title, caption) = match flames {
            Flames::Of(arm) => (vec![self.arms[arm]], self.title.clone(), self.caption()),
            Flames::Difference => (Vec::new(), self.title_of_difference(), self.caption_of_difference()),
        };
        Some(Picture { title, caption, arms, svg, narrow: None })
    }

    /// A file of its own has no caption, and its colours mean nothing without words.
    fn title_of_difference(&self) -> String {
        format!("{} (red: more with {}; blue: less)", self.title, self.candidate)
    }

    fn caption(&self) -> String {
        format!(
            "A box is as wide as the time {} in its function and in all that this calls, which stands above it. What is narrower than a \
             pixel is left out.",
            self.one
        )
    }

    fn caption_of_difference(&self) -> String {
        format!(
            "A box is as wide as the time {} of both arms together in its function and in all that this calls, which stands above it. \
             Red: more with {}; blue: less; the deeper, the larger its part that only one arm has. What is narrower than a pixel is left \
             out, and the colour of a narrow box may be chance.",
            self.one, self.candidate
        )
    }

    /// A box with its name, where there is room for that, and what the pointer shows.
    fn paint(&self, svg: &mut String, placed: &Placed<'_>, flames: Flames, height: f64) {
        let (left, right) = (px(placed.from), px(placed.from + placed.width));
        let top = height - ROW * (placed.level + 1) as f64;
        let (colour, depth) = self.colour(placed.ns, flames);
        svg.push_str(&format!(
            "<g><title>{}: {}</title><rect x=\"{left}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" fill-opacity=\"{depth:.2}\" \
             stroke=\"{}\"/>",
            escape(placed.name),
            escape(&self.words(placed.ns, flames)),
            px(top),
            right - left,
            px(ROW),
            hex(colour),
            hex(GRID)
        ));
        let letters = fitting(placed.width - 2.0 * MARGIN, SIZE);
        if letters >= FEWEST_LETTERS {
            svg.push_str(&format!(
                "<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\">{}</text>",
                left + px(MARGIN),
                px(top + ROW - 5.0),
                px(SIZE),
                hex(INK),
                escape(&shorten(placed.name, letters))
            ));
        }
        svg.push_str("</g>\n");
    }

    /// The colour of a box, and how much of it. Its root, because a tenth more shall be seen.
    fn colour(&self, ns: [f64; 2], flames: Flames) -> (RGBColor, f64) {
        match flames {
            Flames::Of(arm) => (palette::arm(self.arms[arm]), PLAIN),
            Flames::Difference => {
                let change = (ns[1] - ns[0]) / (ns[0] + ns[1]);
                let tone = if change > 0.0 { Tone::Worse } else { Tone::Same };
                (TONES[tone as usize], DEEPEST * change.abs().sqrt())
            }
        }
    }

    fn words(&self, ns: [f64; 2], flames: Flames) -> String {
        match flames {
            Flames::Of(arm) => format!("{} {}", time(ns[arm]), self.one),
            Flames::Difference => {
                format!("{} → {} {}, {}", time(ns[0]), time(ns[1]), self.one, signed(ns[1] - ns[0]))
            }
        }
    }

    /// What is seen, in words: where most of the time, or of the difference, is spent itself.
    fn label(&self, flames: Flames) -> String {
        let mut own: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
        for stack in self.stacks {
            add(own.entry(stack.frames.last().map_or("", String::as_str)).or_default(), stack.ns);
        }
        let size = |ns: &[f64; 2]| match flames {
            Flames::Of(arm) => ns[arm],
            Flames::Difference => (ns[1] - ns[0]).abs(),
        };
        let mut own: Vec<(&str, [f64; 2])> = own.into_iter().collect();
        own.sort_by(|(_, a), (_, b)| size(b).total_cmp(&size(a)));
        let named = own.iter().take(NAMED).map(|(name, ns)| format!("{name} {}", self.words(*ns, flames)));
        format!("{}: {}", self.title, named.collect::<Vec<_>>().join("; "))
    }
}

/// A time with its unit.
fn time(ns: f64) -> String {
    if ns == 0.0 { "0".to_owned() } else { format_number(&Unit::Nanoseconds, ns) }
}

fn signed(ns: f64) -> String {
    let sign = if ns > 0.0 { "+" } else { "−" };
    if ns == 0.0 { "no difference".to_owned() } else { format!("{sign}{}", time(ns.abs())) }
}

fn add(sum: &mut [f64; 2], ns: [f64; 2]) {
    sum.iter_mut().zip(ns).for_each(|(sum, ns)| *sum += ns);
}

/// A function below the same callers, with all that it calls.
#[derive(Default)]
struct Frame<'a> {
    ns: [f64; 2],
    calls: BTreeMap<&'a str, Frame<'a>>,
}

impl<'a> Frame<'a> {
    fn of(stacks: &'a [Stack]) -> Frame<'a> {
        let mut root = Frame::default();
        for stack in stacks {
            let mut at = &mut root;
            add(&mut at.ns, stack.ns);
            for name in &stack.frames {
                at = at.calls.entry(name).or_default();
                add(&mut at.ns, stack.ns);
            }
        }
        root
    }

    /// Where it and all above it stand. Stacks have a limit, and so has this recursion.
    fn place(
        &self,
        name: &'a str,
        level: usize,
        from: f64,
        width_of: &impl Fn([f64; 2]) -> f64,
        boxes: &mut Vec<Placed<'a>>,
    ) {
        let width = width_of(self.ns);
        if width < LEAST_WIDTH {
            return;
        }
        boxes.push(Placed { name, ns: self.ns, level, from, width });
        let mut at = from;
        for (&name, frame) in &self.calls {
            frame.place(name, level + 1, at, width_of, boxes);
            at += width_of(frame.ns);
        }
    }
}

/// A box.
struct Placed<'a> {
    name: &'a str,
    ns: [f64; 2],
    level: usize,
    from: f64,
    width: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &str, ns: [f64; 2]) -> Stack {
        Stack { frames: frames.split(';').map(str::to_owned).collect(), ns }
    }

    fn graph(stacks: &[Stack]) -> FlameGraph<'_> {
        let title = "direct=0 → direct=1: processor time".to_owned();
        FlameGraph { stacks, title, one: "an operation", arms: [0, 1], candidate: "direct=1".to_owned() }
    }

    /// The box of a function: its x, width, y, colour and how much of that.
    fn rect(svg: &str, name: &str) -> (i32, i32, i32, String, f64) {
        let line = svg.lines().find(|line| line.starts_with(&format!("<g><title>{name}: "))).unwrap();
        let value = |attribute: &str| {
            let (_, rest) = line.split_once(&format!(" {attribute}=\"")).unwrap();
            rest.split('"').next().unwrap().to_owned()
        };
        let number = |attribute: &str| value(attribute).parse::<i32>().unwrap();
        let depth = value("fill-opacity").parse().unwrap();
        (number("x"), number("width"), number("y"), value("fill"), depth)
    }

    /// 800 → 400 ns: reads do not change, writes go away, and a way of their own of 100 ns comes.
    fn stacks() -> Vec<Stack> {
        vec![
            stack("kernel;read", [300.0, 300.0]),
            stack("kernel;write", [500.0, 0.0]),
            stack("kernel;direct", [0.0, 100.0]),
        ]
    }

    #[test]
    fn a_box_is_as_wide_as_its_time_and_stands_on_its_caller() {
        let stacks = stacks();
        let graph = graph(&stacks);
        let baseline = graph.drawn(Flames::Of(0), Form::Wide).unwrap();
        let (x, width, y, colour, _) = rect(&baseline.svg, "write");
        assert_eq!((x, width), (px(920.0 * 300.0 / 800.0), px(920.0 * 500.0 / 800.0)));
        assert_eq!((y, colour.as_str()), (0, "#010300"), "the baseline's colour");
        assert_eq!(rect(&baseline.svg, "kernel"), (0, px(920.0), px(ROW), "#010300".to_owned(), PLAIN));
        assert_eq!(rect(&baseline.svg, "all").2, px(2.0 * ROW));
        assert!(!baseline.svg.contains("direct: "), "the baseline has none of it");
        let both = graph.drawn(Flames::Difference, Form::Wide).unwrap();
        // Of 1200 ns of both: direct 100, read 600, write 500, in the order of their names.
        assert_eq!(rect(&both.svg, "direct").1, px(920.0 / 12.0));
        let (x, width, ..) = rect(&both.svg, "read");
        assert_eq!((x, width), (px(920.0 / 12.0), px(920.0 * 7.0 / 12.0) - px(920.0 / 12.0)));
        assert!(both.svg.contains("viewBox=\"0 0 1840 108\" width=\"920\" height=\"54\""), "{}", both.svg);
    }

    #[test]
    fn red_is_more_with_the_candidate_and_blue_is_less() {
        let stacks = stacks();
        let svg = graph(&stacks).drawn(Flames::Difference, Form::Wide).unwrap().svg;
        let (red, blue) = (hex(TONES[Tone::Worse as usize]), hex(TONES[Tone::Same as usize]));
        let colour = |name: &str| {
            let (.., colour, depth) = rect(&svg, name);
            (colour, depth)
        };
        assert_eq!(colour("direct"), (red, DEEPEST));
        assert_eq!(colour("write"), (blue.clone(), DEEPEST));
        assert_eq!(colour("read").1, 0.0);
        // Callers are coloured, too: 400 of 1200 ns less.
        assert_eq!(colour("kernel"), (blue, 0.35));
        assert!(svg.contains("<title>write: 500 ns → 0 an operation, −500 ns</title>"), "{svg}");
        assert!(svg.contains("<title>read: 300 ns → 300 ns an operation, no difference</title>"), "{svg}");
        let words = "processor time: write 500 ns → 0 an operation, −500 ns; direct 0 → 100 ns an operation, +100 ns; read ";
        assert!(svg.contains(words), "{svg}");
    }

    #[test]
    fn names_are_never_markup() {
        let stacks = [stack("<script>alert(1)</script>&\"'", [1.0, 2.0])];
        let mut graph = graph(&stacks);
        graph.title = "a=<b> & \"c\"".to_owned();
        for flames in [Flames::Of(0), Flames::Of(1), Flames::Difference] {
            let svg = graph.drawn(flames, Form::Wide).unwrap().svg;
            assert!(svg.contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;&#x27;"), "{svg}");
            assert!(!svg.contains("<script") && !svg.contains("<b>") && !svg.contains("& "), "{svg}");
            assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
        }
    }

    #[test]
    fn what_is_narrower_than_a_pixel_is_left_out() {
        let stacks = [stack("wide", [1000.0, 1000.0]), stack("thin;above", [1.0, 1.0])];
        let graph = graph(&stacks);
        let wide = graph.drawn(Flames::Difference, Form::Wide).unwrap().svg;
        assert!(!wide.contains("<g><title>thin"), "{wide}");
        let narrow = graph.drawn(Flames::Of(1), Form::Narrow).unwrap().svg;
        assert!(narrow.contains("width=\"350\"") && narrow.contains("<g><title>wide: 1.00 µs"), "{narrow}");
    }

    #[test]
    fn without_time_there_is_no_picture() {
        let none = [stack("a", [0.0, 1.0])];
        assert!(graph(&none).drawn(Flames::Of(0), Form::Wide).is_none());
        assert!(graph(&[]).drawn(Flames::Difference, Form::Wide).is_none());
        let endless = [stack("a", [f64::INFINITY, f64::NAN])];
        assert!(graph(&endless).drawn(Flames::Difference, Form::Wide).is_none());
    }
}
