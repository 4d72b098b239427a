//! Rows of what was counted beside the runs: memory, and instructions.
//!
//! Enters: the lines that scripts/bench.sh has collected. Leaves: rows.

use crate::figures::median;
use crate::promise::{Promise, Ratio, Verdict};
use crate::row::Row;

/// Of lines `memory ENGINE BYTES`; `None` without any.
pub(crate) fn memory(lines: &str) -> Result<Option<Row>, String> {
    let of = |engine: &str| {
        let prefix = format!("memory {engine} ");
        let bytes: Vec<f64> = lines
            .lines()
            .filter_map(|line| line.strip_prefix(&prefix))
            .filter_map(|bytes| bytes.trim().parse().ok())
            .collect();
        (!bytes.is_empty()).then(|| median(bytes) / 1_048_576.0)
    };
    let (native, fio) = match (of("native"), of("fio")) {
        (Some(native), Some(fio)) => (native, fio),
        (None, None) => return Ok(None),
        _ => return Err("memory was measured of one engine only".to_owned()),
    };
    let ratio = Ratio { value: native / fio, interval: None, rounds: 1 };
    Ok(Some(Row {
        case: "memory (PSS) of 16 jobs with 1024 I/Os in flight each".to_owned(),
        level: ("native", format!("{native:.1} MiB")),
        over: ("fio", format!("{fio:.1} MiB")),
        promised: Promise::AtMost(1.0).words(),
        verdict: Promise::AtMost(1.0).judge(&ratio, None),
        ratio,
    }))
}

/// Of lines `instructions LOOP NATIVE FIO STORED MOST`, the last two `-` where no count is stored.
pub(crate) fn instructions(lines: &str) -> Result<Vec<Row>, String> {
    lines.lines().filter_map(|line| Some((line, line.strip_prefix("instructions ")?))).map(one).collect()
}

fn one((line, counts): (&str, &str)) -> Result<Row, String> {
    let words: Vec<&str> = counts.split_whitespace().collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok());
    let (Some(name), Some(native), Some(fio)) = (words.first(), number(1), number(2)) else {
        return Err(format!("not a line of counts: {line}"));
    };
    let (promised, verdict) = match (number(3), number(4)) {
        (Some(stored), Some(most)) => (format!("≤ {stored} + 10 %"), Verdict::of(native <= most)),
        _ => (String::new(), Verdict::NotPromised),
    };
    Ok(Row {
        case: format!("{name}, instructions an I/O"),
        level: ("native", format!("{native}")),
        over: ("fio", format!("{fio}")),
        ratio: Ratio { value: native / fio, interval: None, rounds: 1 },
        promised,
        verdict,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_the_median_of_each_engine() {
        let lines =
            "memory native 1048576\nmemory native 3145728\nmemory native 2097152\nmemory fio 4194304\n";
        let row = memory(lines).unwrap().unwrap();
        assert_eq!((row.level.1.as_str(), row.over.1.as_str()), ("2.0 MiB", "4.0 MiB"));
        assert_eq!((row.ratio.value, row.verdict), (0.5, Verdict::Kept));
        assert!(memory("instructions null 1 2 3 4\n").unwrap().is_none());
        assert!(memory("memory fio 5\n").is_err());
    }

    #[test]
    fn instructions_are_judged_by_what_is_stored() {
        let lines = "instructions null 70.5 600.0 70 77\ninstructions psync 90 300 80 88\n\
                     memory fio 5\ninstructions libaio 90 300 - -\n";
        let rows = instructions(lines).unwrap();
        let verdicts: Vec<_> = rows.iter().map(|row| row.verdict).collect();
        assert_eq!(verdicts, [Verdict::Kept, Verdict::Missed, Verdict::NotPromised]);
        assert_eq!(rows[0].promised, "≤ 70 + 10 %");
        assert!(instructions("instructions null\n").is_err());
    }
}
