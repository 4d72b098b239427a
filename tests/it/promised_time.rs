//! What `--plan` and a run say of the time they take. Whether it is so: `scripts/promised-time.sh`.

use crate::sandbox::Sandbox;

const JOB: &str = "[w]\nrw=write\nbs=64k\nsize=16m\ntime_based\nruntime=10\n";

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The last section of a plan.
fn longest(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let plan = sandbox.succeed(&[&["run", "--plan", "job.fio"], arguments].concat());
    words(plan.split_once("\nlongest time\n").unwrap().1)
}

#[test]
fn a_plan_says_the_longest_time_and_the_soonest_end() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let usual = longest(&sandbox, &["--vary", "bs=64k,128k"]);
    // 30 rounds of three trials; the first look of one comparison is at round 4.
    assert!(usual.starts_with("15 min ") || usual.starts_with("16 min "), "{usual}");
    assert!(usual.contains("; 2 min ") && usual.contains(" where round 4 decides every row"), "{usual}");
    let several = longest(&sandbox, &["--vary", "bs=64k,128k,256k,512k,1m,2m,4m"]);
    assert!(several.contains(" where round 6 decides every row"), "{several}");
    let fixed = longest(&sandbox, &["--vary", "bs=64k,128k", "--rounds", "6"]);
    assert!(fixed.starts_with("3 min ") && !fixed.contains("where"), "{fixed}");
    let hooks = longest(&sandbox, &["--vary", "bs=64k,128k", "--rounds", "6", "--before", "true"]);
    assert!(hooks.ends_with("; hooks come on top"), "{hooks}");
}

#[test]
fn a_plan_counts_what_is_written_before_each_trial() {
    let sandbox = Sandbox::new();
    let seconds = |job: &str| {
        sandbox.write("job.fio", job);
        let said = longest(&sandbox, &["--vary", "bs=64k,128k", "--rounds", "3"]);
        let number = |word: &str| word.trim_end_matches(';').parse::<f64>().unwrap();
        match said.split(' ').collect::<Vec<_>>()[..] {
            [minutes, "min", seconds, ..] => 60.0 * number(minutes) + number(seconds),
            [seconds, ..] => number(seconds),
            _ => panic!("{said}"),
        }
    };
    // Six trials, three rounds being too few for a lead-in.
    let written = seconds(JOB);
    assert!((60.0..70.0).contains(&written), "{written}");
    for job in [JOB.replace("rw=write", "rw=randrw"), format!("{JOB}overwrite=1\n")] {
        let filled = seconds(&job.replace("size=16m", "size=2g"));
        assert!(filled > written + 20.0, "{filled} with files that are filled first, {written} without");
    }
}
