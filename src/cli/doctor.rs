//! `assay doctor`: is this machine fit to measure on.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use super::Failure;
use super::database::Database;
use super::probe;
use crate::host::doctor::{Finding, Severity, findings, watch};
use crate::host::{facts, path_facts};
use crate::launch::GuestOffer;
use crate::record::HostFacts;
use crate::sys::terminal::{self, Form, visible, visible_line};

/// How long the machine is watched.
const WATCH: Duration = Duration::from_millis(500);
/// Columns of the text form.
const WIDTH: usize = 80;
/// Columns before effects and commands.
const INDENT: &str = "         ";

/// How the findings are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people, 80 columns.
    Text,
    /// Findings and all facts as one JSON object.
    Json,
}

/// The least severity that `--fail-if` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FailIf {
    /// Results would mislead
    Bad,
    /// Or are noisier than they need be
    Warning,
}

impl FailIf {
    /// How many findings are that severe.
    fn counts(self, found: &[Finding]) -> usize {
        let least = match self {
            FailIf::Bad => Severity::Bad,
            FailIf::Warning => Severity::Warning,
        };
        found.iter().filter(|finding| finding.severity <= least).count()
    }
}

/// Say what makes this machine unfit to measure on, and what mends it.
///
/// Looks only; changes nothing and needs no root. The exit code is 0 whatever is found, unless --fail-if asks for it.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Directory, file or block device that will be measured
    #[arg(default_value = ".")]
    pub path: PathBuf,
    /// How to print the findings
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Exit with 3 when something bad is found, or also with a warning
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub fail_if: Option<FailIf>,
    /// Where probes of this machine are stored
    #[command(flatten)]
    pub database: Database,
}

/// Prints the findings on standard output.
///
/// # Errors
/// A [`Failure`] with exit code 2 when the path cannot be looked at; I/O errors of standard output.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut all = facts();
    let of_path = path_facts(&args.path);
    if let Some(error) = of_path.get("path.error") {
        let failure = Failure::request(format!("cannot look at '{}': {error}", args.path.display()))
            .hint("name an existing directory, file or block device: assay doctor /mnt/disk");
        return Err(failure.into());
    }
    all.extend(of_path);
    all.extend(watch(&args.path, WATCH));
    let found = findings(&all);
    let offered = crate::target::offered(&args.path);
    let guests = crate::launch::guests_offered(&args.path);
    let probed = probed(&args.database, &all);
    let written = match args.format {
        Format::Text => {
            let machine = (offered, guests, probed);
            let text = text(&args.path, &all, &found, &machine, terminal::colours());
            let mut out = terminal::out_as(Form::Styled);
            write!(out, "{text}").and_then(|()| out.flush())
        }
        Format::Json => {
            let path = args.path.to_string_lossy();
            let document = serde_json::json!({ "path": path, "findings": found, "facts": all,
                "targets": offered.iter().cloned().collect::<BTreeMap<_, _>>(), "guests": guests, "probe": probed });
            let mut out = terminal::out_as(Form::Json);
            writeln!(out, "{document:#}").and_then(|()| out.flush())
        }
    };
    match written {
        // A pager that was left is no failure.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(gate(args.fail_if, &found)),
    }
}

/// 3 where something as severe as that was found.
fn gate(fail_if: Option<FailIf>, found: &[Finding]) -> ExitCode {
    match fail_if.map_or(0, |least| least.counts(found)) {
        0 => ExitCode::SUCCESS,
        // Names what ended a script; the findings are on standard output.
        severe => {
            let found = crate::units::counted(severe as u64, "finding");
            terminal::tell(&format!("assay: --fail-if holds: {found}"));
            ExitCode::from(3)
        }
    }
}

/// What can be made to measure on, and what is missing for the rest.
type Offered = (&'static str, Option<String>);

/// What the latest probe of this machine says, where there is a store that has one.
fn probed(database: &Database, here: &HostFacts) -> Option<String> {
    let store = database.db.exists().then(|| database.read().ok()).flatten()?;
    probe::doctor_lines(&probe::stored(&store), here)
}

fn text(
    path: &Path,
    facts: &HostFacts,
    found: &[Finding],
    (offered, offer, probed): &(Vec<Offered>, GuestOffer, Option<String>),
    colours: bool,
) -> String {
    let fact = |name: &str| facts.get(name).unwrap_or("unknown");
    let place = match (facts.get("fs.type"), facts.get("device")) {
        (Some(fs), Some(device)) => format!("{fs} on {device} ({})", fact("device.kind")),
        (None, Some(device)) => format!("{device} ({})", fact("device.kind")),
        (fs, None) => fs.unwrap_or("no filesystem known").to_owned(),
    };
    let mut lines = [
        format!("path     {}: {place}", path.display()),
        format!("machine  {} × {}", fact("cpu.count"), facts.get("cpu.model").unwrap_or("processor")),
        format!("kernel   {}", fact("kernel.release")),
    ]
    .map(|line| visible_line(&line).into_owned())
    .to_vec();
    lines.extend(targets(offered));
    lines.extend(labelled("guests", &guests(offer)));
    lines.extend(probed.iter().flat_map(|text| labelled("probe", text)));
    for finding in found {
        lines.push(String::new());
        let style = if colours { style(finding.severity) } else { anstyle::Style::new() };
        let word = format!("{:<7}", finding.severity.name());
        let mut fact = wrapped(&finding.fact, WIDTH - INDENT.len()).into_iter();
        lines.push(format!("{style}{word}{style:#}  {}", fact.next().unwrap_or_default()));
        lines.extend(
            fact.chain(wrapped(finding.effect, WIDTH - INDENT.len())).map(|line| format!("{INDENT}{line}")),
        );
        for (word, command) in [("mend", &finding.mend), ("look", &finding.look), ("undo", &finding.undo)] {
            let Some(command) = command else { continue };
            // Broken lines end in a backslash, so that they can be copied together.
            let pieces = wrapped(command, WIDTH - INDENT.len() - 8);
            let last = pieces.len() - 1;
            for (at, piece) in pieces.iter().enumerate() {
                let word = if at == 0 { format!("{word}: ") } else { " ".repeat(6) };
                lines.push(format!("{INDENT}{word}{piece}{}", if at < last { " \\" } else { "" }));
            }
        }
    }
    lines.push(String::new());
    lines.push(summary(found));
    lines.join("\n") + "\n"
}

/// `targets  loop zram xfs; not here: ram pmem`.
fn targets(offered: &[Offered]) -> Vec<String> {
    let names = |there: bool| {
        let chosen = offered.iter().filter(|(_, missing)| missing.is_none() == there);
        chosen.map(|(name, _)| *name).collect::<Vec<_>>().join(" ")
    };
    let mut text = match names(true) {
        none if none.is_empty() => String::new(),
        some => format!("{some}; "),
    };
    match names(false) {
        none if none.is_empty() => text.truncate(text.len().saturating_sub(2)),
        some => text.push_str(&format!("not here: {some} (--format json says why)")),
    }
    labelled("targets", &text)
}

/// Kernels in virtual machines: by what, and which ones are known.
fn guests(offer: &GuestOffer) -> String {
    let Some(emulator) = &offer.emulator else {
        return "no kernel can be booted: there is no qemu-system-x86_64 (Debian, Ubuntu: apt-get install \
                qemu-system-x86)"
            .to_owned();
    };
    let releases: Vec<&str> = offer.kernels.iter().map(|(release, _)| release.as_str()).collect();
    let kernels = if let (true, Some(path)) = (releases.is_empty(), &offer.unreadable) {
        format!(
            "the kernel {} may be read by its owner only: copy it to ~/.cache/assay/kernels",
            path.display()
        )
    } else if releases.is_empty() {
        "no kernel is in target/kernels, ~/.cache/assay/kernels or /boot; --vary kernel= takes any vmlinuz or linux-image .deb"
            .to_owned()
    } else {
        let newest = match &offer.newest {
            Some(release) => format!("kernel=newest is {release}"),
            None => "none of them is where kernel=newest looks".to_owned(),
        };
        format!("kernels {}; {newest}", releases.join(" "))
    };
    format!("{emulator}; {}; {kernels}", offer.accelerator)
}

/// A text behind its name, in lines.
fn labelled(name: &str, text: &str) -> Vec<String> {
    let mut word = format!("{name:<9}");
    let lines = if text.is_empty() { Vec::new() } else { wrapped(text, WIDTH - INDENT.len()) };
    lines.into_iter().map(|line| std::mem::replace(&mut word, INDENT.to_owned()) + &line).collect()
}

fn summary(found: &[Finding]) -> String {
    let count = |severity: Severity| found.iter().filter(|finding| finding.severity == severity).count();
    let counted = |count: usize, one: &str, many: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    };
    if found.is_empty() {
        return "nothing found that would spoil measurements".to_owned();
    }
    format!(
        "{} bad, {}, {}",
        count(Severity::Bad),
        counted(count(Severity::Warning), "warning", "warnings"),
        counted(count(Severity::Note), "note", "notes")
    )
}

fn style(severity: Severity) -> anstyle::Style {
    let color = match severity {
        Severity::Bad => anstyle::AnsiColor::Red,
        Severity::Warning => anstyle::AnsiColor::Yellow,
        Severity::Note => anstyle::AnsiColor::Cyan,
    };
    color.on_default().bold()
}

/// A text in lines of at most `width` columns, broken at blanks; a longer word has a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let options = textwrap::Options::new(width)
        .break_words(false)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .wrap_algorithm(textwrap::WrapAlgorithm::FirstFit);
    // Facts are what devices and kernels say of themselves.
    let text = visible(text).split_whitespace().collect::<Vec<_>>().join(" ");
    textwrap::wrap(&text, options).into_iter().map(std::borrow::Cow::into_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qemu() -> GuestOffer {
        let kernels = ["6.1.0", "6.12.1"].map(|release| (release.to_owned(), PathBuf::from("/boot/vmlinuz")));
        GuestOffer {
            emulator: Some("qemu 9.1".to_owned()),
            accelerator: "KVM, which runs".to_owned(),
            kernels: kernels.to_vec(),
            newest: Some("6.12.1".to_owned()),
            unreadable: None,
        }
    }

    #[test]
    fn without_an_emulator_the_package_is_named() {
        let none = GuestOffer { emulator: None, ..qemu() };
        assert!(guests(&none).contains("apt-get install qemu-system-x86"), "{}", guests(&none));
        let kernelless = GuestOffer { kernels: Vec::new(), ..qemu() };
        assert!(guests(&kernelless).contains("no kernel is in target/kernels, "), "{}", guests(&kernelless));
        let closed = GuestOffer { unreadable: Some(PathBuf::from("/boot/vmlinuz-6.8")), ..kernelless };
        assert!(
            guests(&closed).contains("/boot/vmlinuz-6.8 may be read by its owner only"),
            "{}",
            guests(&closed)
        );
    }

    #[test]
    fn the_text_fits_80_columns_and_commands_stay_whole() {
        let mut facts = HostFacts::default();
        for (name, value) in [
            ("fs.type", "ext4"),
            ("device", "sda"),
            ("device.kind", "scsi or sata"),
            ("clocksource", "hpet"),
            ("clocksource.available", "tsc hpet"),
            ("cpu.smt", "on"),
        ] {
            facts.set(name, value);
        }
        let found = findings(&facts);
        let offered = vec![("loop", None), ("zram", Some("no zram".to_owned()))];
        let text =
            text(Path::new("/mnt"), &facts, &found, &(offered, qemu(), Some("run 3".to_owned())), true);
        assert!(text.contains("\nprobe    run 3\n"), "{text}");
        assert!(text.contains("\nguests   qemu 9.1; KVM, which runs; kernels 6.1.0 6.12.1;"), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("; kernel=newest is 6.12.1 "), "{text}");
        assert!(text.contains("\ntargets  loop; not here: zram (--format json says why)\n"), "{text}");
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert!(plain.lines().all(|line| line.chars().count() <= WIDTH), "{plain}");
        assert!(plain.starts_with("path     /mnt: ext4 on sda (scsi or sata)\n"), "{plain}");
        assert!(plain.ends_with("\n1 bad, 0 warnings, 1 note\n"), "{plain}");
        let command = "mend: echo tsc | sudo tee \\\n               \
                       /sys/devices/system/clocksource/clocksource0/current_clocksource\n";
        assert!(plain.contains(command), "{plain}");
        assert!(text.contains("\u{1b}["), "there is no colour to strip");
    }

    #[test]
    fn a_fit_machine_is_told_so() {
        assert!(
            text(Path::new("."), &HostFacts::default(), &[], &(Vec::new(), qemu(), None), false)
                .ends_with("nothing found that would spoil measurements\n")
        );
    }

    #[test]
    fn a_gate_counts_what_is_as_severe_or_worse() {
        let mut facts = HostFacts::default();
        for (name, value) in [("cpu.governor", "powersave"), ("cpu.boost", "on"), ("cpu.smt", "on")] {
            facts.set(name, value);
        }
        let found = findings(&facts);
        assert_eq!(found.len(), 3);
        assert_eq!((FailIf::Bad.counts(&found), FailIf::Warning.counts(&found)), (1, 2));
        assert_eq!(gate(Some(FailIf::Bad), &found), ExitCode::from(3));
        assert_eq!(
            (gate(None, &found), gate(Some(FailIf::Bad), &found[1..])),
            (ExitCode::SUCCESS, ExitCode::SUCCESS)
        );
    }

    #[test]
    fn a_wrong_path_is_exit_code_2() {
        let error = run(&Args {
            path: "/no/such/path".into(),
            format: Format::Text,
            fail_if: None,
            database: Database { db: "assay.db".into() },
        })
        .unwrap_err();
        let failure: &Failure = error.downcast_ref().unwrap();
        assert_eq!(failure.code(), 2);
        assert!(failure.to_string().contains("'/no/such/path'") && failure.hinted().is_some());
    }
}
