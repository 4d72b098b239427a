//! A server that runs beside the trials and does the work of their command.

use std::process::{Child, Command, Stdio};

use crate::sandbox::{Sandbox, errors};
use crate::tools::is_root;

/// Counts to the number that it is sent, writes a block and answers.
const SERVER: &str = "exec 3<>requests
while read n <&3; do
    i=0; while [ $i -lt $n ]; do i=$((i+1)); done
    dd if=/dev/zero of=data bs=4k count=1 conv=fsync 2> /dev/null
    echo done > replies
done
";
/// Sends it one, and waits for the answer.
const CLIENT: &str = "echo ${count} > requests; read answer < replies";

struct Server(Child);

impl Server {
    /// One in a sandbox, with its number in `server.pid`.
    fn start(sandbox: &Sandbox) -> Server {
        let directory = sandbox.path();
        let made = Command::new("mkfifo").args(["requests", "replies"]).current_dir(directory).status();
        assert!(made.unwrap().success());
        let mut server = Command::new("sh");
        server.args(["-c", SERVER]).current_dir(directory).stdout(Stdio::null());
        let server = Server(server.spawn().unwrap());
        sandbox.write("server.pid", &format!("{}\n", server.0.id()));
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_time_of_a_command_is_that_of_the_server_that_works_for_it() {
    let sandbox = Sandbox::new();
    let _server = Server::start(&sandbox);
    let words = [
        "run", "-q", "--rounds", "5", "--no-lead-in", "--directory", ".", "--vary", "count=20000,200000",
        "--observe", "server=./server.pid", "--", "sh", "-c", CLIENT,
    ];
    sandbox.succeed(&words);
    let run = sandbox.export("1");
    let median = |metric: &str, cell: u32| {
        let at =
            run.metrics.iter().position(|known| known.name == metric).unwrap_or_else(|| panic!("{metric}"));
        let trials = run.trials.iter().filter(|trial| trial.cell == cell);
        let values = trials.filter_map(|trial| trial.values.iter().find(|(of, _)| *of as usize == at));
        let mut values: Vec<f64> = values.map(|(_, value)| *value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let cpu = |cell: u32| median("usr_cpu", cell) + median("sys_cpu", cell);
    let client = median("client.usr_cpu", 1) + median("client.sys_cpu", 1);
    assert!(cpu(1) > 3.0 * cpu(0) && cpu(1) > 5.0 * client, "{} {} {client}", cpu(0), cpu(1));
    assert!(run.metrics.iter().all(|metric| metric.name != "majf"), "of nobody: {:?}", run.metrics);
    // The budget says so, too. On a busy machine the wait for a processor may be longer than all that.
    let report: serde_json::Value =
        serde_json::from_str(&sandbox.succeed(&["report", "1", "--format", "json"])).unwrap();
    let parts = report["analysis"]["budgets"][0]["parts"].as_array().unwrap();
    let is_processor =
        |part: &&serde_json::Value| matches!(part[0].as_str(), Some("user" | "kernel" | "processor"));
    let of_processor = parts.iter().filter(is_processor);
    let ns: f64 = of_processor.map(|part| part[1]["difference_ns"]["estimate"].as_f64().unwrap()).sum();
    assert!(ns / 1e9 > 0.5 * (cpu(1) - cpu(0)), "{ns} ns: {parts:?}");
    let text = sandbox.succeed(&["report", "1", "-v"]);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("processor time and waits are those of server=./server.pid, with"), "{text}");
}

#[test]
fn a_servers_samples_and_sleeps_are_seen() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    let _server = Server::start(&sandbox);
    let words = [
        "run",
        "-q",
        "--aa",
        "--rounds",
        "1",
        "--no-lead-in",
        "--directory",
        ".",
        "--vary",
        "count=400000",
        "--observe",
        "server=./server.pid,cpu,waits",
        "--",
        "sh",
        "-c",
        CLIENT,
    ];
    sandbox.succeed(&words);
    let run = sandbox.export("1");
    let value = |beginning: &str| {
        let of = |(at, _): &&(u32, f64)| run.metrics[*at as usize].name.starts_with(beginning);
        run.trials[0].values.iter().find(of).map(|(_, value)| *value)
    };
    assert!(value("cpu.samples").unwrap() > 20.0, "{:?}", run.trials[0]);
    // dd, which the server starts, sleeps until its block is written.
    assert!(value("waits.sleeps").unwrap() >= 1.0 && value("waits.at.").is_some(), "{:?}", run.trials[0]);
}

#[test]
fn a_server_that_is_not_there_is_told_before_the_first_trial() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[w]\nrw=write\nsize=4k\n");
    let refused = |words: &[&str]| {
        let output = sandbox.assay(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
        errors(&output)
    };
    let said = refused(&["run", "--aa", "--observe", "server=no-such-server", "--", "true"]);
    assert!(said.contains("no process of 'no-such-server' runs") && said.contains("--before"), "{said}");
    let said = refused(&["run", "job.fio", "--aa", "--observe", "server=sh"]);
    assert!(said.contains("server=sh: only a command"), "{said}");
    let said = refused(&["run", "--aa", "--observe", "server=sh,server=dash", "--", "true"]);
    assert!(said.contains("one server can be watched"), "{said}");
    // A hook may start it; where it does not, its trials are skipped with that reason.
    let words = ["run", "--aa", "--rounds", "1", "--before", "true", "--observe", "server=no-such-server"];
    let output = sandbox.assay(&[&words[..], &["--", "true"]].concat()).output().unwrap();
    assert!(errors(&output).contains("no process of 'no-such-server' runs"), "{}", errors(&output));
}
