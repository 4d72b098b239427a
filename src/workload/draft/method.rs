//! Options of methods: what io_uring, libaio and pvsync2 can be told.
//!
//! Enters: an option and its value. Leaves: what it says, in the draft.

use super::Draft;
use crate::workload::issue::IoMethod::{self, IoUring, Libaio, Pvsync2};
use crate::workload::issue::MethodOptions;
use crate::workload::values::{Value, number};

/// The options and the methods that have them, as in fio, which knows them with no other.
const METHODS: &[(&str, &[IoMethod])] = &[
    ("hipri", &[IoUring, Pvsync2]),
    ("hipri_percentage", &[Pvsync2]),
    ("fixedbufs", &[IoUring]),
    ("registerfiles", &[IoUring]),
    ("sqthread_poll", &[IoUring]),
    ("sqthread_poll_cpu", &[IoUring]),
    ("nonvectored", &[IoUring]),
    ("force_async", &[IoUring]),
    ("nowait", &[IoUring, Libaio, Pvsync2]),
];

impl Draft {
    pub(super) fn apply_method_numbers(&mut self, name: &str, text: &str) -> Option<Value<()>> {
        let kb = self.kb_base;
        let options = &mut self.job.method_options;
        Some(match name {
            "hipri_percentage" => {
                number(text, kb, 0, 100).map(|percent| options.polled_percent = percent as u8)
            }
            "sqthread_poll_cpu" => {
                number(text, kb, 0, 4095).map(|cpu| options.submission_cpu = Some(cpu as u32))
            }
            // fio's -1, the default, is 1 where the kernel has the calls.
            "nonvectored" if text == "-1" => {
                options.vectored = false;
                Ok(())
            }
            "nonvectored" => number(text, kb, 0, 1).map(|on| options.vectored = on == 0),
            "force_async" => {
                number(text, kb, 0, u64::from(u32::MAX)).map(|every| options.force_async = every as u32)
            }
            _ => return None,
        })
    }

    /// Options that the job's method does not have.
    pub(super) fn method_contradictions(&self) -> Vec<String> {
        METHODS
            .iter()
            .filter(|(name, methods)| {
                is_set(name, &self.job.method_options) && !methods.contains(&self.job.method)
            })
            .map(|(name, methods)| {
                let names: Vec<&str> = methods.iter().map(|method| method.name()).collect();
                format!(
                    "{name} is an option of ioengine={}, not of {}; leave one of them out",
                    names.join(", "),
                    self.job.method.name()
                )
            })
            .collect()
    }
}

/// Whether the option says something else than what holds without it.
fn is_set(name: &str, options: &MethodOptions) -> bool {
    match name {
        "hipri" => options.polled,
        "hipri_percentage" => options.polled_percent != 100,
        "fixedbufs" => options.fixed_buffers,
        "registerfiles" => options.registered_files,
        "sqthread_poll" => options.submission_thread,
        "sqthread_poll_cpu" => options.submission_cpu.is_some(),
        "nonvectored" => options.vectored,
        "force_async" => options.force_async > 0,
        "nowait" => options.no_wait,
        _ => false,
    }
}
