//! The HTML report in a real headless Chromium: drawn in light and dark, nothing fetched, nothing complained of, no
//! label clipped, overlapping or tiny.
//!
//! Needs the program `chromium` (Debian: `apt-get install chromium`). Without it these tests say so and pass, but
//! never where the environment has `CI`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use assay::analyse::{self, Analysis};
use assay::record::{Run, Source, StopRule};
use assay::report::{Document, Format, Options, Overview, OverviewPart, RenderOptions, render};
use assay::units::{Better, Unit};

use crate::fixtures;

/// The browser, or `None` with a word why there is no test.
fn chromium() -> Option<PathBuf> {
    crate::deadline::watched();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name))).find(|p| p.is_file());
    if found.is_none() {
        crate::tools::skipped("there is no chromium on PATH (apt-get install chromium)");
    }
    found
}

/// Runs the browser once on a file.
fn browse(browser: &Path, page: &Path, size: (u32, u32), dark: bool, more: &[&str]) -> Output {
    let profile = tempfile::tempdir().unwrap();
    // A browser that hangs is ended with all its processes, and the test fails.
    let output = Command::new("timeout")
        .args(["--kill-after=5", "120"])
        .arg(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", "--log-level=0"])
        .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!dark)))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--window-size={},{}", size.0, size.1))
        .args(more)
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    output
}

/// All that is folded, unfolded.
fn unfolded(html: &str) -> String {
    html.replace("<details>", "<details open>")
}

fn page(fixture: &(Run, Analysis)) -> String {
    render(&Document::build(&fixture.0, &fixture.1, &Options::default()), Format::Html)
}

/// One page of several runs.
fn several(fixtures: &[(&'static str, (Run, Analysis))]) -> String {
    let part = |(name, run, analysis)| OverviewPart {
        name,
        document: Some(Document::build(run, analysis, &Options::default())),
        failure: None,
    };
    let parts = fixtures.iter().map(|(name, (run, analysis))| part((*name, run, analysis))).collect();
    Overview { parts }.render(Format::Html, RenderOptions::default())
}

struct Pixels {
    bytes: Vec<u8>,
    width: usize,
    height: usize,
    samples: usize,
}

impl Pixels {
    fn read(path: &Path) -> Pixels {
        let decoder = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(path).unwrap()));
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let samples = info.color_type.samples();
        Pixels { bytes, width: info.width as usize, height: info.height as usize, samples }
    }

    fn at(&self, x: usize, y: usize) -> [u8; 3] {
        let start = (y * self.width + x) * self.samples;
        [self.bytes[start], self.bytes[start + 1], self.bytes[start + 2]]
    }

    /// Share of pixels in these lines that are not the page's background.
    fn ink(&self, lines: std::ops::Range<usize>) -> f64 {
        let paper = self.at(2, 2);
        let count = lines.len() * self.width;
        let inked = lines
            .flat_map(|y| (0..self.width).map(move |x| (x, y)))
            .filter(|(x, y)| self.at(*x, *y) != paper);
        inked.count() as f64 / count as f64
    }
}

#[test]
fn the_page_is_drawn_in_light_and_dark() {
    let Some(browser) = chromium() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("report.html");
    std::fs::write(&file, unfolded(&page(&fixtures::measured()))).unwrap();
    for (dark, name) in [(false, "light.png"), (true, "dark.png")] {
        let picture = dir.path().join(name);
        browse(&browser, &file, (1000, 2400), dark, &[&format!("--screenshot={}", picture.display())]);
        let pixels = Pixels::read(&picture);
        assert_eq!((pixels.width, pixels.height), (1000, 2400));
        let brightness = pixels.at(2, 2).iter().map(|c| u32::from(*c)).sum::<u32>();
        assert!(if dark { brightness < 150 } else { brightness > 700 }, "{name}: background {brightness}");
        for band in 0..6 {
            let ink = pixels.ink(band * 400..(band + 1) * 400);
            assert!((0.005..0.6).contains(&ink), "{name}: {ink} of band {band} is ink");
        }
    }
}

/// On paper nothing can be unfolded.
#[test]
fn what_is_folded_is_printed() {
    let Some(browser) = chromium() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (file, pdf) = (dir.path().join("report.html"), dir.path().join("report.pdf"));
    let pages = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let print = format!("--print-to-pdf={}", pdf.display());
        browse(&browser, &file, (1000, 1000), false, &[&print]);
        let bytes = std::fs::read(&pdf).unwrap();
        String::from_utf8_lossy(&bytes).lines().filter(|line| line.ends_with("/Type /Page")).count()
    };
    let html = page(&fixtures::measured());
    let all = pages(&unfolded(&html));
    assert!(all > 4, "{all} pages");
    assert_eq!(pages(&html), all);
}

#[test]
fn nothing_is_fetched_and_nothing_complained_of() {
    let Some(browser) = chromium() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("report.html");
    let complaints = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let output = browse(&browser, &file, (1000, 1000), false, &["--dump-dom"]);
        let dom = String::from_utf8(output.stdout).unwrap();
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        (dom, log.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect::<Vec<_>>())
    };
    for fixture in [fixtures::measured(), fixtures::nasty(), fixtures::dbench()] {
        let html = page(&fixture);
        for scheme in ["http://", "https://", "src=", "url(", "@import", "<script", "<link"] {
            assert!(!html.contains(scheme), "the page has {scheme}");
        }
        let (dom, log) = complaints(&html);
        assert_eq!(log, Vec::<String>::new());
        assert!(dom.matches("<svg role=\"img\"").count() >= 2, "pictures are missing");
        assert_eq!(dom.matches("<svg").count(), dom.matches("</svg>").count());
        assert!(!dom.contains("<b>"), "text of others became markup");
    }
    // The check itself can fail: the page's own policy refuses a script, and the browser says so.
    let (_, log) = complaints(&page(&fixtures::dbench()).replace("</main>", "<script>1</script></main>"));
    assert!(!log.is_empty(), "the browser's console is not seen");
}

/// Walks all labels of all pictures and reports those that are clipped, overlap or are tiny, and a page that is
/// wider than its window.
const INSPECT: &str = r#"<script>
const faults = [];
for (const svg of document.querySelectorAll('svg')) {
  const frame = svg.getBoundingClientRect();
  // The other form of a picture, for wider or narrower pages; or one that is folded away.
  if (frame.width === 0) continue;
  const texts = [...svg.querySelectorAll('text')].map(t => ({ text: t.textContent.trim(), box: t.getBoundingClientRect(),
    size: parseFloat(getComputedStyle(t).fontSize) * frame.width / svg.viewBox.baseVal.width })).filter(t => t.text);
  for (const t of texts) {
    const b = t.box;
    if (b.left < frame.left - 1 || b.right > frame.right + 1 || b.top < frame.top - 1 || b.bottom > frame.bottom + 1)
      faults.push('clipped: ' + t.text);
    if (t.size < 10) faults.push('tiny: ' + t.text + ' ' + t.size);
  }
  texts.forEach((a, i) => texts.slice(i + 1).forEach(b => {
    if (a.box.left < b.box.right && b.box.left < a.box.right && a.box.top < b.box.bottom - 2 && b.box.top < a.box.bottom - 2)
      faults.push('overlap: ' + a.text + ' / ' + b.text);
  }));
}
if (document.scrollingElement.scrollWidth > innerWidth) faults.push('page wider than window');
document.body.setAttribute('data-faults', faults.length + ':' + faults.join(' | '));
</script></body>"#;

#[test]
fn no_label_is_clipped_overlapping_or_tiny() {
    let Some(browser) = chromium() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("report.html");
    let policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">";
    for (name, fixture) in [
        ("measured", fixtures::measured()),
        ("nasty", fixtures::nasty()),
        ("dbench", fixtures::dbench()),
        ("bdev", fixtures::bdev("3.6.0-rc5+", "3.6.0-rc5.mikulas.3+")),
        ("why", crate::why::made_up()),
        ("stages", with_stages()),
    ] {
        let html = unfolded(&page(&fixture));
        assert!(html.contains(policy), "the page has lost its policy");
        std::fs::write(&file, html.replace(policy, "").replace("</body>", INSPECT)).unwrap();
        for width in [1000, 1600, 640] {
            let output = browse(&browser, &file, (width, 1200), false, &["--dump-dom"]);
            let dom = String::from_utf8(output.stdout).unwrap();
            let faults = dom.split("data-faults=\"").nth(1).unwrap().split('"').next().unwrap();
            assert_eq!(faults, "0:", "{name} at {width} pixels");
        }
    }
}

/// Twelve rows of three crossed factors, of which each changes something, with what explains them: a table of all effects, causes and their
/// pictures, every trial, latencies and notes.
fn crossed() -> (Run, Analysis) {
    let factors: [(&str, &[&str]); 3] =
        [("direct", &["0", "1"]), ("bs", &["4k", "16k", "64k", "256k"]), ("fsync", &["0", "1", "8"])];
    let mut run = fixtures::empty_run("12.fio", &factors, Source::Measured);
    run.design.stop = StopRule { rounds: Some(6), ..StopRule::default() };
    run.design.primary = Some("write.bw".to_owned());
    run.job_text = Some("[w]\nrw=randwrite\nsize=2G\ntime_based\nruntime=60s\n".to_owned());
    let counted = [
        ("write.bw", Unit::BytesPerSecond, Better::Higher),
        ("write.total_ios", Unit::Count, Better::Higher),
        ("workers.wall", Unit::Seconds, Better::Lower),
        ("usr_cpu", Unit::Seconds, Better::Lower),
        ("sys_cpu", Unit::Seconds, Better::Lower),
        ("workers.run_wait", Unit::Seconds, Better::Lower),
    ];
    let metrics =
        counted.map(|(name, unit, better)| run.metric_index(&fixtures::metric("", name, unit, better)));
    let mut noise = fixtures::Noise::new(11);
    for round in 0..6 {
        for cell in 0..run.cells.len() as u32 {
            let levels = &run.cells[cell as usize].levels;
            let slow = (1.0 + f64::from(levels[0])) * (1.0 + f64::from(levels[2]))
                / (1.0 + 0.3 * f64::from(levels[1]));
            let mut of = |value: f64| value * (0.1 * noise.normal()).exp();
            let values = [of(8e8 / slow), 1e5, of(slow), of(0.05), of(0.3 + 0.1 * slow), of(0.05)];
            let values = metrics.into_iter().zip(values).collect();
            run.trials.push(fixtures::trial(cell, round, cell, values));
        }
    }
    let mut analysis = analyse::analyse(&run, &analyse::Options::default());
    analysis.curves = fixtures::measured().1.curves;
    (run, analysis)
}

/// Requests by stage, whose picture is on the page.
fn with_stages() -> (Run, Analysis) {
    let fixture = crate::why::with_stages();
    let html = page(&fixture);
    assert!(html.contains("The time of a request by stage, drawn") && html.contains("(I2D)"), "{html}");
    fixture
}

/// Looks into the report in frames as wide as a phone and as a desktop.
const FRAMES: &str = r#"<!DOCTYPE html><body>
<iframe id="phone" src="report.html" style="width:390px;height:800px;border:0"></iframe>
<iframe id="desktop" src="report.html" style="width:1280px;height:800px;border:0"></iframe>
<script>onload = () => {
  const page = name => document.getElementById(name).contentDocument;
  const faults = [], phone = page('phone');
  phone.querySelectorAll('details').forEach(part => { part.open = true; });
  if (phone.scrollingElement.scrollWidth > 390) faults.push('page wider than the phone');
  let seen = 0;
  for (const part of phone.querySelectorAll('ul.verdicts li > span, table:not(.facts) th, table:not(.facts) td, .narrow svg')) {
    const box = part.getBoundingClientRect();
    if (box.width === 0 || part.closest('thead')) continue;
    seen += 1;
    if (box.left < 0 || box.right > 390 || part.scrollWidth > part.clientWidth + 1 && part.tagName === 'TD')
      faults.push('not whole: ' + part.textContent.trim().slice(0, 40));
  }
  const zero = [...phone.querySelectorAll('.narrow svg text')].some(t => t.textContent.trim() === '0 %' && t.getBoundingClientRect().width > 0);
  if (!zero) faults.push('no zero line');
  document.body.setAttribute('data-seen', [page('desktop').documentElement.scrollHeight, seen, faults.join(' | ')].join(':'));
}</script></body>"#;

#[test]
fn a_phone_shows_all_and_a_desktop_report_has_few_screens() {
    let Some(browser) = chromium() else { return };
    let dir = tempfile::tempdir().unwrap();
    let frames = dir.path().join("frames.html");
    std::fs::write(&frames, FRAMES).unwrap();
    let fixtures = [
        ("measured", fixtures::measured()),
        ("12 rows", fixtures::dbench()),
        ("why", crate::why::made_up()),
        ("stages", with_stages()),
        ("factors", crossed()),
        ("long names", fixtures::nasty()),
        ("kernels", fixtures::bdev("3.6.0-rc5+", "3.6.0-rc5.mikulas.3+")),
    ];
    let pages = fixtures.iter().map(|(name, fixture)| (*name, page(fixture)));
    for (name, html) in pages.chain([("several", several(&fixtures[..2]))]) {
        std::fs::write(dir.path().join("report.html"), html).unwrap();
        let output =
            browse(&browser, &frames, (1800, 1000), false, &["--allow-file-access-from-files", "--dump-dom"]);
        let dom = String::from_utf8(output.stdout).unwrap();
        let seen = dom.split("data-seen=\"").nth(1).unwrap().split('"').next().unwrap();
        let parts: Vec<&str> = seen.splitn(3, ':').collect();
        assert_eq!(parts[2], "", "{name}");
        let (height, looked_at) = (parts[0].parse::<u32>().unwrap(), parts[1].parse::<u32>().unwrap());
        // Names that no system has may take more lines.
        assert!(height <= 5000 || name == "long names", "{name}: {height} pixels");
        assert!(looked_at > 20, "{name}: {looked_at}");
    }
}

/// The made-up run in which writers wait, with stacks of processor time.
fn with_stacks() -> (Run, Analysis) {
    let stacks = |waits: u32| {
        format!(
            "write;ext4_write;copy_in 200000000\nwrite;ext4_write;lock_slow {waits}\nwrite;entry 90000000\n"
        )
    };
    let run = crate::flames::with_stacks(&stacks(700_000_000), &stacks(10_000_000));
    let analysis = analyse::analyse(&run, &analyse::Options::default());
    (run, analysis)
}

#[test]
fn functions_are_found_in_flame_graphs_by_the_only_script() {
    let Some(browser) = chromium() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("report.html");
    let html = unfolded(&page(&with_stacks()));
    assert_eq!((html.matches("<script>").count(), html.matches("script-src 'sha256-").count()), (1, 1));
    let seen = |typed: &str, more: &str| {
        let field = format!("<input type=\"search\" value=\"{typed}\">");
        let text =
            html.replace("<input type=\"search\">", &field).replace("</main>", &format!("{more}</main>"));
        std::fs::write(&file, text).unwrap();
        let output = browse(&browser, &file, (1000, 1000), false, &["--dump-dom"]);
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        let complaints = log.lines().filter(|line| line.contains("CONSOLE")).count();
        (String::from_utf8(output.stdout).unwrap(), complaints)
    };
    let said = |dom: &str| {
        let found = dom.split("<output>").nth(1).unwrap().split("</output>").next().unwrap();
        (dom.contains("<p class=\"search\">"), found.to_owned(), dom.matches("class=\"found\"").count())
    };
    let (nothing, complaints) = seen("", "");
    assert_eq!((said(&nothing), complaints), ((true, String::new(), 0), 0));
    // The wide graph and the one for a phone have a box of it each.
    let (found, complaints) = seen("LOCK_", "");
    let (is_shown, words, boxes) = said(&found);
    assert!(is_shown && words.starts_with("1 box, at most ") && complaints == 0, "{words}");
    assert_eq!(boxes, 2, "{words}");
    let share: f64 = words.split("at most ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((45.0..65.0).contains(&share), "(700 + 10) of (700 + 10 + 2 × 290) ns: {words}");
    let (refused, complaints) = seen("", "<script>document.title = 'theirs'</script>");
    assert!(complaints > 0 && !refused.contains("<title>theirs"), "another script runs");
}
