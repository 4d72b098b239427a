//! The threads of a server that works for the command of a trial: its processor time, and what it waited for.
//!
//! Enters: its processes, which run already. Leaves: what getrusage(2) and `/proc` say of the command's own threads elsewhere, here of the
//! server's: `usr_cpu`, `sys_cpu`, `workers.*`. What was counted of the command is called `client.*` then. It must not know which server it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::{Observer, Unseen};
use crate::record::{Note, Outcome, Sample, Unit};
use crate::sys::followed::{Followed, Lives};
use crate::sys::task::tasks_of;

/// What is the server's, or nobody's, where one is watched.
const OF_WORKERS: [&str; 7] = [
    "usr_cpu", "sys_cpu", "ctx.voluntary", "ctx.involuntary", "workers.wall", "workers.run_wait",
    "workers.storage_wait",
];

/// Follows a server.
pub struct ServerObserver {
    name: String,
    processes: Vec<i32>,
    following: Option<(JoinHandle<Lives>, Arc<AtomicBool>)>,
}

impl ServerObserver {
    /// The server that was asked for by this name.
    #[must_use]
    pub fn prepared(name: &str, processes: &[i32]) -> ServerObserver {
        ServerObserver { name: name.to_owned(), processes: processes.to_vec(), following: None }
    }
}

/// Looks now and then, until it is over.
fn follow(mut followed: Followed, over: &AtomicBool) -> Lives {
    while !over.load(Ordering::Acquire) {
        std::thread::park_timeout(followed.due_in());
        followed.look_when_due();
    }
    followed.look();
    followed.ended(0.0)
}

impl Observer for ServerObserver {
    fn start(&mut self) {
        let followed = Followed::these(self.processes.clone());
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        self.following = Some((std::thread::spawn(move || follow(followed, &told)), over));
    }

    fn end(&mut self) {
        if let Some((thread, over)) = &self.following {
            over.store(true, Ordering::Release);
            thread.thread().unpark();
        }
    }

    fn stop(&mut self) -> Result<Outcome, Unseen> {
        self.end();
        let unseen = |why: &str| Unseen::watched(&format!("{} is", self.name), why);
        let (thread, _) = self.following.take().ok_or_else(|| unseen("it was not started"))?;
        let lives = thread.join().map_err(|_| unseen("the thread that looks at it died"))?;
        // A server that has ended meanwhile has left what was last seen of it.
        if self.processes.iter().all(|process| tasks_of(*process).is_empty()) {
            return Err(unseen("its processes ended before the trial did"));
        }
        let seconds = |name: &str, value: f64| Sample::new("", name, Unit::Seconds, value);
        let mut samples = vec![
            seconds("usr_cpu", lives.user_s),
            seconds("sys_cpu", lives.ran_s - lives.user_s),
            seconds("workers.wall", lives.wall_s),
            seconds("workers.run_wait", lives.run_wait_s),
        ];
        samples.extend(lives.storage_s.map(|storage_s| seconds("workers.storage_wait", storage_s)));
        let note = format!(
            "processor time and waits are those of {}, with all that it started; the command's own are client.*",
            self.name
        );
        Ok(Outcome { samples, notes: vec![Note::from(note)], ..Outcome::default() })
    }
}

/// Calls what was counted of a command's own threads by another name, because a server's threads are the workers.
pub fn call_workers_clients(outcome: &mut Outcome) {
    let metrics =
        outcome.samples.iter_mut().map(|sample| &mut sample.metric).filter(|metric| metric.job.is_empty());
    for metric in metrics.filter(|metric| OF_WORKERS.contains(&metric.name.as_str())) {
        metric.name = format!("client.{}", metric.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_of_a_server_is_counted_and_the_commands_has_another_name() {
        let mut server = std::process::Command::new("sh")
            .args(["-c", "read x; i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; echo; read x"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let process = i32::try_from(server.id()).unwrap();
        let mut observer = ServerObserver::prepared("server=sh", &[process]);
        observer.start();
        std::io::Write::write_all(server.stdin.as_mut().unwrap(), b"\n").unwrap();
        std::io::Read::read_exact(server.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let seen = observer.stop().unwrap();
        let of_ended = {
            let mut observer = ServerObserver::prepared("server=sh", &[process]);
            observer.start();
            server.kill().unwrap();
            server.wait().unwrap();
            observer.stop().unwrap_err().to_string()
        };
        let value = |outcome: &Outcome, name: &str| {
            outcome.samples.iter().find(|sample| sample.metric.name == name).map(|sample| sample.value)
        };
        let [usr, sys, wall] = ["usr_cpu", "sys_cpu", "workers.wall"].map(|name| value(&seen, name).unwrap());
        assert!(usr + sys > 0.02 && usr > 0.0 && usr + sys <= wall * 1.05 + 0.02, "{:?}", seen.samples);
        assert!(seen.notes[0].text.contains("of server=sh, with"), "{:?}", seen.notes);
        assert_eq!(of_ended, "server=sh is not watched: its processes ended before the trial did");
        let mut outcome = Outcome::default();
        outcome.samples.push(Sample::new("", "usr_cpu", Unit::Seconds, 9.0));
        outcome.samples.push(Sample::new("", "tps", Unit::Count, 5.0));
        call_workers_clients(&mut outcome);
        assert_eq!(
            (value(&outcome, "client.usr_cpu"), value(&outcome, "usr_cpu"), value(&outcome, "tps")),
            (Some(9.0), None, Some(5.0))
        );
    }
}
