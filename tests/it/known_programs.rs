//! Programs whose printed results are known need no `--metric`.

use crate::sandbox::{Sandbox, errors};

/// Prints what pgbench does; the more clients, the more transactions.
const PGBENCH: &str = "printf 'number of clients: %s\\nlatency average = 2.5 ms\\ntps = %s.25 (without initial connection time)\\n' $1 ${1}000\n";

#[test]
fn the_rate_decides_and_what_was_printed_into_files_is_compared() {
    let sandbox = Sandbox::new();
    sandbox.write("printing.sh", PGBENCH);
    std::os::unix::fs::symlink("/bin/sh", sandbox.path().join("pgbench")).unwrap();
    let words =
        ["run", "--rounds", "4", "--vary", "clients=1,2", "--", "./pgbench", "printing.sh", "${clients}"];
    let output = sandbox.run(&words);
    let told = errors(&output);
    assert!(output.status.success(), "{told}");
    assert!(
        told.contains("tps, latency, latency.stddev, failed of pgbench are read from what it prints"),
        "{told}"
    );
    let run = sandbox.export("1");
    assert_eq!(run.design.primary.as_deref(), Some("tps"));
    let report = sandbox.succeed(&["report", "1"]);
    assert!(report.contains("tps +100.0 %"), "{report}");
    // What a person wants to be read takes its place.
    let own = [&words[..5], &["--metric", "mine=average = (.*) ms:ms"], &words[5..]].concat();
    sandbox.succeed(&own);
    assert_eq!(sandbox.export("2").design.primary.as_deref(), Some("mine"));

    let printed = |clients: u32, tps: [u32; 4]| -> String {
        let one = |tps: u32| {
            format!(
                "number of clients: {clients}\nlatency average = 1 ms\ntps = {tps}.5 (without initial connection time)\n"
            )
        };
        tps.into_iter().map(one).collect()
    };
    sandbox.write("before.txt", &printed(4, [1000, 1010, 1020, 1030]));
    sandbox.write("after.txt", &printed(8, [2000, 2010, 2020, 2030]));
    let compared = sandbox.succeed(&["compare", "before.txt", "after.txt"]);
    assert!(
        compared.contains("imported from pgbench · 8 trials")
            && compared.contains("after is faster than before by more than 2 %"),
        "{compared}"
    );
    assert!(
        compared.contains("tps in k/s") && compared.contains("asked.clients: 4 for before; 8 for after"),
        "{compared}"
    );
    let by_pattern = ["compare", "before.txt", "after.txt", "--metric", "x=^tps = ([0-9]+):/s"];
    assert!(sandbox.succeed(&by_pattern).contains("x in k/s"));
    let none = sandbox.run(&["compare", "before.txt", "after.txt", "--metric", "x=iops ([0-9]+)"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(errors(&none).contains("no line matches what --metric gives for x"), "{}", errors(&none));
}
