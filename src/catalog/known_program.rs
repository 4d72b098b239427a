//! Benchmark programs whose printed results people have read by eye for years: with one of them as the command, or its output in a file, no
//! `--metric` need be written.
//!
//! Enters: the words of a command, or a text. Leaves: patterns as `--metric` takes them. It must not know how a program is run.

use std::sync::LazyLock;

use regex::RegexSet;

use super::metric_pattern::MetricPattern;
use crate::units::Unit;

/// A program that says by itself how fast it was.
#[derive(Clone, Copy, Debug)]
pub struct KnownProgram {
    /// As it is called.
    pub name: &'static str,
    /// What it says it was asked for and what makes results incomparable when it differs: (name, regular expression).
    pub asked: &'static [(&'static str, &'static str)],
    /// What it may print, as `--metric` takes it.
    metrics: &'static [&'static str],
    /// The metric that decides when the program is given these words; `None`: with them it prints no results.
    decides: fn(&[&str]) -> Option<&'static str>,
}

/// In their order a text is recognised.
pub static KNOWN_PROGRAMS: [KnownProgram; 4] = [
    KnownProgram {
        name: "pgbench",
        asked: &[
            ("transaction", "^transaction type: (.+)$"),
            ("scale", "^scaling factor: ([0-9]+)$"),
            ("query mode", "^query mode: (.+)$"),
            ("clients", "^number of clients: ([0-9]+)$"),
            ("threads", "^number of threads: ([0-9]+)$"),
        ],
        metrics: &[
            r"tps=^tps = ([0-9.]+) \((?:without|excluding):/s",
            "latency=^latency average = ([0-9.]+) ms:ms",
            "latency.stddev=^latency stddev = ([0-9.]+) ms:ms",
            "failed=^number of failed transactions: ([0-9]+):lower",
        ],
        decides: |words| {
            let initializes = |word: &&str| word.starts_with("-i") || word.starts_with("--init");
            (!words.iter().any(initializes)).then_some("tps")
        },
    },
    KnownProgram {
        name: "sysbench",
        asked: &[
            ("threads", "^Number of threads: ([0-9]+)$"),
            ("block", "^Block size ([0-9A-Za-z]+)$"),
            ("fsync", r"fsync\(\) each ([0-9]+) requests"),
            ("files", "^([0-9]+ files, .+ each)$"),
            ("mode", "^Doing (.+) test$"),
        ],
        metrics: &[
            r"tps=^\s+transactions:\s+[0-9]+\s+\(([0-9.]+) per sec:/s",
            r"queries=^\s+queries:\s+[0-9]+\s+\(([0-9.]+) per sec:/s",
            r"reads=^\s+reads/s:\s+([0-9.]+):/s",
            r"writes=^\s+writes/s:\s+([0-9.]+):/s",
            r"fsyncs=^\s+fsyncs/s:\s+([0-9.]+):/s",
            r"events=^\s+events per second:\s+([0-9.]+):/s",
            r"latency=^\s+avg:\s+([0-9.]+):ms",
            r"latency.p95=^\s+95th percentile:\s+([0-9.]+):ms",
            r"latency.p99=^\s+99th percentile:\s+([0-9.]+):ms",
            r"latency.max=^\s+max:\s+([0-9.]+):ms",
        ],
        decides: |words| {
            let has = |wanted: &str| words.contains(&wanted);
            let writes =
                ["seqwr", "seqrewr", "rndwr"].iter().any(|mode| has(&format!("--file-test-mode={mode}")));
            // Others are scripts of transactions: oltp_read_write, tpcc.lua.
            let tests = ["fileio", "cpu", "memory", "threads", "mutex"].into_iter().find(|test| has(test));
            let of_test = || match tests {
                Some("fileio") if writes => "writes",
                Some("fileio") => "reads",
                Some("cpu") => "events",
                Some(_) => "latency",
                None => "tps",
            };
            // Which test it is may be what is varied.
            let is_open = words
                .iter()
                .any(|word| word.contains("${") && (!word.starts_with('-') || word.contains("test-mode=")));
            (has("run") && !is_open).then(of_test)
        },
    },
    KnownProgram {
        name: "db_bench",
        asked: &[
            ("entries", r"^Entries:\s+([0-9]+)$"),
            ("values", r"^Values:\s+([0-9]+ bytes)"),
            ("benchmark", r"^([a-z0-9]+)\s+:\s+[0-9.]+ micros/op"),
        ],
        metrics: &[
            r"ops=^[a-z0-9]+\s+:.* ([0-9]+) ops/sec:/s",
            r"latency=^[a-z0-9]+\s+:\s+([0-9.]+) micros/op:us",
        ],
        decides: |words| {
            one_of_a_list(words.iter().find_map(|word| word.strip_prefix("--benchmarks=")), "ops")
        },
    },
    KnownProgram {
        name: "redis-benchmark",
        asked: &[(
            "test",
            r"^\s*(?:=+ )?([A-Z][A-Z0-9_]*(?: \([^)]*\))?)(?: =+\s*$|: [0-9.]+ requests per second)",
        )],
        metrics: &[
            r"rps=(?:^\s*throughput summary|^\s*[A-Z][A-Z0-9_]*(?: \([^)]*\))?): ([0-9.]+) requests per second:/s",
            r"latency.p50=(?:^\s*(?:[0-9.]+\s+){2}|requests per second, p50=)([0-9.]+)(?: msec|(?:\s+[0-9.]+){3}\s*$):ms",
            r"latency.p99=^\s*(?:[0-9.]+\s+){4}([0-9.]+)\s+[0-9.]+\s*$:ms",
        ],
        decides: |words| {
            let tests = words.iter().position(|word| *word == "-t").and_then(|at| words.get(at + 1));
            one_of_a_list(tests.copied(), "rps")
        },
    },
];

/// Of several results in one text a trial would have the last alone.
fn one_of_a_list(list: Option<&str>, metric: &'static str) -> Option<&'static str> {
    list.filter(|list| !list.contains(',')).map(|_| metric)
}

/// Programs that run another one.
const WRAPPERS: [&str; 13] = [
    "sudo", "env", "nice", "ionice", "taskset", "numactl", "timeout", "chrt", "stdbuf", "runuser", "setpriv",
    "time", "exec",
];
const SHELLS: [&str; 4] = ["sh", "bash", "dash", "zsh"];
/// Words of a shell before a command.
const KEYWORDS: [&str; 6] = ["do", "then", "else", "!", "{", "if"];
/// Options of such programs that have no value; behind another one a name is its value.
const WITHOUT_VALUE: [&str; 7] = ["-E", "-H", "-n", "-S", "-b", "-p", "-i"];

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// The known program of one command. Behind a program that runs another one its own words come first, some with a value: the first word
/// that is a known name is taken, if it is the name alone or a program's path.
fn of_words(words: &[&str]) -> Option<(&'static KnownProgram, Vec<String>)> {
    let is_assignment = |word: &&&str| word.contains('=') && !word.starts_with('-');
    let begins = words.iter().take_while(is_assignment).count();
    let is_wrapped = WRAPPERS.contains(&base(words.get(begins)?));
    let candidates = if is_wrapped { begins + 1..words.len() } else { begins..begins + 1 };
    candidates.into_iter().find_map(|at| {
        let is_value =
            at > begins && words[at - 1].starts_with('-') && !WITHOUT_VALUE.contains(&words[at - 1]);
        let is_path = words[at].contains('/') && !words[at].contains("/bin/");
        let is_program = !is_wrapped || !is_value && !is_path;
        let known = KNOWN_PROGRAMS.iter().find(|known| is_program && known.name == base(words[at]))?;
        Some((known, known.specs((known.decides)(&words[at + 1..])?)))
    })
}

impl KnownProgram {
    /// The program that a command runs and that will print results; also behind `sudo`, `env` and their like, and as a command in the
    /// script of a shell. With it its patterns, the deciding one first, which must be found, and others, which may be.
    #[must_use]
    pub fn of_command(argv: &[String]) -> Option<(&'static KnownProgram, Vec<String>)> {
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        let is_wrapped = words.first().is_some_and(|first| WRAPPERS.contains(&base(first)));
        let shell =
            words.iter().position(|word| SHELLS.contains(&base(word))).filter(|at| *at == 0 || is_wrapped);
        // `-c`, `-lc`, `-ec`.
        let is_script = |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
        let script = shell.and_then(|at| {
            let after = words[at..].iter().position(is_script)?;
            words.get(at + after + 1)
        });
        let Some(script) = script else { return of_words(&words) };
        // What a program says of its errors may go where it likes.
        let script = script.replace("2>&1", " ");
        script.split([';', '&', '|', '\n', '(', ')']).find_map(|command| {
            let words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
            let words: Vec<&str> = words
                .skip_while(|word| KEYWORDS.contains(word))
                .filter(|word| !word.starts_with("2>"))
                .collect();
            // What goes into a file is not seen.
            let is_seen = !words.iter().any(|word| word.contains('>'));
            of_words(&words).filter(|_| is_seen)
        })
    }

    fn specs(&self, deciding: &str) -> Vec<String> {
        let name = |spec: &str| spec.split('=').next().unwrap_or_default().to_owned();
        let (first, others): (Vec<&str>, Vec<&str>) =
            self.metrics.iter().partition(|spec| name(spec) == deciding);
        let optional = others.into_iter().map(|spec| spec.replacen('=', "?=", 1));
        first.into_iter().map(str::to_owned).chain(optional).collect()
    }

    /// All that it may print.
    #[must_use]
    pub fn patterns(&self) -> Vec<MetricPattern> {
        self.metrics.iter().filter_map(|spec| MetricPattern::parse(spec).ok()).collect()
    }

    /// The program that has printed a rate in a text. All are looked for in one pass, as a table of millions of lines comes here, too.
    #[must_use]
    pub fn of_text(text: &str) -> Option<&'static KnownProgram> {
        static RATES: LazyLock<(Vec<&KnownProgram>, RegexSet)> = LazyLock::new(|| {
            let rates = |known: &'static KnownProgram| {
                let patterns =
                    known.patterns().into_iter().filter(|pattern| pattern.metric.unit == Unit::PerSecond);
                patterns.map(move |pattern| (known, format!("(?mR){}", pattern.regex)))
            };
            let (programs, regexes): (Vec<_>, Vec<_>) = KNOWN_PROGRAMS.iter().flat_map(rates).unzip();
            (programs, RegexSet::new(regexes).unwrap_or_default())
        });
        RATES.1.matches(text).iter().next().map(|at| RATES.0[at])
    }

    /// The one of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static KnownProgram> {
        KNOWN_PROGRAMS.iter().find(|known| known.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::metric_pattern::Patterns;
    use super::*;

    fn of(command: &str) -> Option<(&'static str, String)> {
        let argv: Vec<String> = command.split('|').map(str::to_owned).collect();
        let (known, specs) = KnownProgram::of_command(&argv)?;
        Some((known.name, MetricPattern::name_in(&specs[0]).to_owned()))
    }

    #[test]
    fn every_pattern_is_one() {
        for known in &KNOWN_PROGRAMS {
            assert_eq!(known.patterns().len(), known.metrics.len(), "{}", known.name);
            assert!(known.patterns().iter().all(|pattern| pattern.guess().is_none()), "{}", known.name);
        }
    }

    #[test]
    fn what_decides_depends_on_what_the_program_is_asked_for() {
        let found = |name, metric: &str| Some((name, metric.to_owned()));
        assert_eq!(of("pgbench|-c|${clients}|-T|10"), found("pgbench", "tps"));
        assert_eq!(of("sudo|-u|postgres|/usr/lib/postgresql/15/bin/pgbench|-T|10"), found("pgbench", "tps"));
        assert_eq!(of("pgbench|-i|-s|10"), None);
        assert_eq!(of("sh|-c|pgbench -i -s 1; pgbench -T 5"), found("pgbench", "tps"));
        assert_eq!(of("sysbench|fileio|prepare"), None);
        assert_eq!(of("sysbench|${t}|run"), None);
        assert_eq!(of("sysbench|fileio|--file-test-mode=${m}|run"), None);
        assert_eq!(of("sysbench|--threads|${n}|--time=5|oltp_read_write|run"), None);
        assert_eq!(of("sysbench|fileio|--file-test-mode=rndrd|run"), found("sysbench", "reads"));
        assert_eq!(of("sysbench|--threads=2|fileio|--file-test-mode=seqwr|run"), found("sysbench", "writes"));
        assert_eq!(of("sysbench|oltp_read_write|run"), found("sysbench", "tps"));
        assert_eq!(of("db_bench|--benchmarks=fillsync"), found("db_bench", "ops"));
        assert_eq!(of("db_bench|--benchmarks=fillseq,readrandom"), None);
        assert_eq!(of("redis-benchmark|-t|set|-q"), found("redis-benchmark", "rps"));
        assert_eq!(of("redis-benchmark|-q"), None);
    }

    #[test]
    fn a_program_is_found_behind_others_and_a_name_that_is_none_is_not_taken_for_it() {
        let pgbench = Some(("pgbench", "tps".to_owned()));
        assert_eq!(of("./pgbench.sh"), None);
        assert_eq!(of("cp|-r|/data/pgbench|/mnt"), None);
        assert_eq!(of("sudo|cp|-r|/data/pgbench|/mnt"), None);
        assert_eq!(of("sh|-c|pgbench -T 5 > /dev/null"), None);
        assert_eq!(of("sh|-c|cd /srv && PGPORT=1 pgbench -c ${c} -T 5"), pgbench);
        assert_eq!(of("sh|-c|pgbench -T 5 2>&1"), pgbench);
        assert_eq!(of("sudo|bash|-lc|pgbench -T 5 2>/dev/null"), pgbench);
        assert_eq!(of("sh|-c|for i in 1 2; do pgbench -T 5; done"), pgbench);
        assert_eq!(of("sudo|-u|postgres|psql|-d|pgbench|-f|q.sql"), None);
        assert_eq!(of("sudo|-u|pgbench|psql"), None);
        assert_eq!(of("env|PGOPTIONS=-c synchronous_commit=${s}|pgbench|-T|1"), pgbench);
    }

    /// What Debian's packages printed.
    #[test]
    fn printed_results_are_recognised_and_read() {
        for (text, name, values) in [
            (
                include_str!("../../tests/data/printed/pgbench.txt"),
                "pgbench",
                &[("tps", 1_139.262_245), ("latency", 3.511e6), ("failed", 0.0)][..],
            ),
            (
                include_str!("../../tests/data/printed/sysbench-fileio.txt"),
                "sysbench",
                &[
                    ("reads", 18411.93),
                    ("writes", 12274.62),
                    ("fsyncs", 1229.46),
                    ("latency", 30_000.0),
                    ("latency.p95", 10_000.0),
                    ("latency.max", 7_540_000.0),
                ],
            ),
            (
                include_str!("../../tests/data/printed/sysbench-oltp.txt"),
                "sysbench",
                &[
                    ("tps", 539.98),
                    ("queries", 10862.43),
                    ("latency", 3.69e6),
                    ("latency.p95", 7.98e6),
                    ("latency.max", 24.63e6),
                ],
            ),
            (
                include_str!("../../tests/data/printed/redis-benchmark.txt"),
                "redis-benchmark",
                &[("rps", 99009.9), ("latency.p50", 271_000.0), ("latency.p99", 1_975_000.0)],
            ),
            (
                include_str!("../../tests/data/printed/redis-benchmark-q.txt"),
                "redis-benchmark",
                &[("rps", 109_890.11), ("latency.p50", 279_000.0)],
            ),
        ] {
            let known = KnownProgram::of_text(text).unwrap();
            assert_eq!(known.name, name);
            let mut optional = known.patterns();
            optional.iter_mut().for_each(|pattern| pattern.may_be_missing = true);
            let mut patterns = Patterns::of(&optional).unwrap();
            text.lines().for_each(|line| patterns.look_at(line));
            let (samples, missing) = patterns.samples("it");
            let found: Vec<(&str, f64)> =
                samples.iter().map(|sample| (sample.metric.name.as_str(), sample.value)).collect();
            assert_eq!((found.as_slice(), missing), (values, None), "{name}");
        }
        assert!(KnownProgram::of_text("a,b\n1,2\n").is_none());
    }
}
