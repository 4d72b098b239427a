//! A job being put together, setting by setting.
//!
//! Enters: canonical option names and their values, in order. Leaves: a [`Job`] once all are in and fit together.

mod contradictions;
mod defaults;
mod method;
mod pace;
mod placement;
mod refused;
mod surroundings;
mod verify;

use super::content::BufferFill;
use super::errors::{Problem, ProblemKind};
use super::issue::{Depth, IoMethod};
use super::job::{BlockRange, BlockSizes, Fallocate, Job, Mix, SeedRule, SyncMode};
use super::job_file::Section;
use super::named_values::{choose, io_method, pattern};
use super::values::{
    BARE_SECONDS, Value, bad, blocks, boolean, number, paths, size, size_range, time, time_range,
};
use contradictions::contradictions;
use defaults::default_job;
use pace::PaceDraft;
use placement::Split;
use verify::VerifyDraft;

/// fio's default `randseed` with `randrepeat=1`.
const FIO_SEED: u64 = 0x89;
const DEFAULT_BLOCK: BlockRange = BlockRange { min: 4096, max: 4096 };
/// A direction for which no `bsrange` is given.
const UNSET_BLOCK: BlockRange = BlockRange { min: 0, max: 0 };

/// A job in the making.
pub(super) struct Draft {
    /// What a `k` is in the settings that are applied now.
    pub(super) kb_base: u64,
    job: Job,
    fixed_blocks: [BlockRange; 3],
    ranged_blocks: [BlockRange; 3],
    read_percent: u8,
    randrepeat: bool,
    randseed: Option<u64>,
    zero: bool,
    /// `None` until something is said of it.
    refill: Option<bool>,
    scramble: bool,
    splits: [Option<Split>; 3],
    pace: PaceDraft,
    verify: VerifyDraft,
}

impl Draft {
    /// fio's defaults.
    pub(super) fn new(section: &str, line: u32) -> Draft {
        Draft {
            kb_base: 1024,
            job: default_job(section, line),
            fixed_blocks: [DEFAULT_BLOCK; 3],
            ranged_blocks: [UNSET_BLOCK; 3],
            read_percent: 50,
            randrepeat: true,
            randseed: None,
            zero: false,
            refill: None,
            scramble: true,
            splits: [const { None }; 3],
            pace: PaceDraft::default(),
            verify: VerifyDraft::default(),
        }
    }

    /// Applies one setting; `None`: not an option of the native engine.
    pub(super) fn apply(&mut self, name: &str, value: Option<&str>) -> Option<Value<()>> {
        let text = value.unwrap_or("");
        refused::refusal(name, text)
            .or_else(|| self.apply_files(name, text))
            .or_else(|| self.apply_pattern(name, text))
            .or_else(|| self.apply_placement(name, text))
            .or_else(|| self.apply_issue(name, text))
            .or_else(|| self.apply_method_numbers(name, text))
            .or_else(|| self.apply_schedule(name, text))
            .or_else(|| self.apply_pace(name, text))
            .or_else(|| self.apply_content(name, text))
            .or_else(|| self.apply_surroundings(name, text))
            .or_else(|| self.apply_switch(name, value))
    }

    fn apply_files(&mut self, name: &str, text: &str) -> Option<Value<()>> {
        let kb = self.kb_base;
        let positive = |text: &str| match size(text, kb) {
            Ok(0) => bad("0 bytes; write e.g. 64m"),
            other => other,
        };
        let job = &mut self.job;
        Some(match name {
            // fio adds those of each line to the ones before, also to those of a [global].
            "filename" => paths(text).map(|names| job.filenames.extend(names)),
            "directory" => paths(text).map(|names| job.directories = names),
            "nrfiles" => number(text, kb, 1, 1 << 20).map(|count| job.nrfiles = count as u32),
            "size" => positive(text).map(|bytes| job.size = Some(bytes)),
            "io_size" => positive(text).map(|bytes| job.io_size = Some(bytes)),
            "filesize" => size_range(text, kb).and_then(|(low, high)| match low {
                0 => bad("0 bytes; write e.g. 64m"),
                _ => {
                    job.filesize = Some((low, high));
                    Ok(())
                }
            }),
            "offset" => size(text, kb).map(|bytes| job.offset = bytes),
            "write_iolog" => {
                job.io_log = Some(text.into());
                Ok(())
            }
            "offset_increment" => size(text, kb).map(|bytes| job.offset_increment = bytes),
            "fallocate" => choose(
                text,
                &[
                    ("none", Fallocate::None),
                    ("0", Fallocate::None),
                    ("native", Fallocate::Native),
                    ("posix", Fallocate::Posix),
                    ("1", Fallocate::Posix),
                    ("keep", Fallocate::Keep),
                    ("truncate", Fallocate::Truncate),
                ],
            )
            .map(|how| job.fallocate = how),
            _ => return None,
        })
    }

    fn apply_pattern(&mut self, name: &str, text: &str) -> Option<Value<()>> {
        let kb = self.kb_base;
        Some(match name {
            "rw" => pattern(text).map(|pattern| self.job.pattern = pattern),
            "rwmixread" => number(text, kb, 0, 100).map(|percent| self.read_percent = percent as u8),
            "rwmixwrite" => number(text, kb, 0, 100).map(|percent| self.read_percent = 100 - percent as u8),
            "bs" => blocks(text, kb, false, self.fixed_blocks).map(|blocks| self.fixed_blocks = blocks),
            "bsrange" => blocks(text, kb, true, self.ranged_blocks).map(|blocks| self.ranged_blocks = blocks),
            "randseed" => number(text, kb, 0, u64::MAX).map(|seed| self.randseed = Some(seed)),
            _ => return None,
        })
    }

    fn apply_issue(&mut self, name: &str, text: &str) -> Option<Value<()>> {
        let kb = self.kb_base;
        let count = |low: u64| number(text, kb, low, 65_536).map(|count| count as u32);
        let job = &mut self.job;
        let depth = &mut job.depth;
        Some(match name {
            "ioengine" => io_method(text).map(|method| job.method = method),
            "iodepth" => count(1).map(|value| depth.iodepth = value),
            "iodepth_batch" => count(0).map(|value| depth.submit = value),
            "iodepth_batch_complete_min" => count(0).map(|value| depth.complete_min = value),
            "iodepth_batch_complete_max" => count(0).map(|value| depth.complete_max = value),
            "iodepth_low" => count(0).map(|value| depth.low = value),
            "sync" => choose(
                text,
                &[
                    ("none", SyncMode::None),
                    ("0", SyncMode::None),
                    ("sync", SyncMode::Sync),
                    ("1", SyncMode::Sync),
                    ("dsync", SyncMode::Dsync),
                ],
            )
            .map(|sync| job.sync = sync),
            "fsync" => number(text, kb, 0, u64::from(u32::MAX)).map(|writes| job.fsync = writes as u32),
            "fdatasync" => {
                number(text, kb, 0, u64::from(u32::MAX)).map(|writes| job.fdatasync = writes as u32)
            }
            "numjobs" => number(text, kb, 1, 4096).map(|clones| job.numjobs = clones as u32),
            // fio reads loops=0 as 1.
            "loops" => number(text, kb, 0, u64::from(u32::MAX)).map(|loops| job.loops = loops.max(1) as u32),
            _ => return None,
        })
    }

    fn apply_schedule(&mut self, name: &str, text: &str) -> Option<Value<()>> {
        let job = &mut self.job;
        Some(match name {
            "name" => {
                text.clone_into(&mut job.name);
                Ok(())
            }
            "runtime" => time(text, BARE_SECONDS).map(|time| job.runtime = (!time.is_zero()).then_some(time)),
            "ramp_time" => time(text, BARE_SECONDS).map(|time| job.ramp_time = time),
            "startdelay" => time_range(text, BARE_SECONDS).map(|times| job.start_delay = times),
            "kb_base" => match text {
                "1000" | "1024" => Ok(()),
                other => bad(format!("'{other}' is neither 1024 nor 1000")),
            },
            _ => return None,
        })
    }

    fn apply_switch(&mut self, name: &str, value: Option<&str>) -> Option<Value<()>> {
        let job = &mut self.job;
        let options = &mut job.method_options;
        // fio stores an absent value as "" for flags; both switch on.
        let on = boolean(value.filter(|value| !value.is_empty()));
        if name == "refill_buffers" {
            return Some(on.map(|on| self.refill = Some(on)));
        }
        let (switch, negated) = match name {
            "hipri" => (&mut options.polled, false),
            "fixedbufs" => (&mut options.fixed_buffers, false),
            "registerfiles" => (&mut options.registered_files, false),
            "sqthread_poll" => (&mut options.submission_thread, false),
            "nowait" => (&mut options.no_wait, false),
            "fsync_on_close" => (&mut job.fsync_on_close, false),
            "create_on_open" => (&mut job.create_on_open, false),
            "unlink" => (&mut job.unlink, false),
            "file_append" => (&mut job.file_append, false),
            "exitall" => (&mut job.exitall, false),
            "time_based" => (&mut job.time_based, false),
            "thread" => (&mut job.thread, false),
            "direct" => (&mut job.direct, false),
            "buffered" => (&mut job.direct, true),
            "end_fsync" => (&mut job.end_fsync, false),
            "overwrite" => (&mut job.overwrite, false),
            "invalidate" => (&mut job.invalidate, false),
            "pre_read" => (&mut job.pre_read, false),
            "fadvise_hint" => (&mut job.fadvise_hint, false),
            "group_reporting" => (&mut job.group_reporting, false),
            "stonewall" => (&mut job.stonewall, false),
            "new_group" => (&mut job.new_group, false),
            "norandommap" => (&mut job.random_map, true),
            "randrepeat" => (&mut self.randrepeat, false),
            "zero_buffers" => (&mut self.zero, false),
            "scramble_buffers" => (&mut self.scramble, false),
            _ => return None,
        };
        Some(on.map(|on| *switch = on != negated))
    }

    /// The finished job, or what is missing from it.
    pub(super) fn finish(mut self, section: &Section) -> Result<Job, Vec<Problem>> {
        let blocks: Vec<BlockRange> = (0..3)
            .map(|at| {
                if self.ranged_blocks[at] == UNSET_BLOCK {
                    self.fixed_blocks[at]
                } else {
                    self.ranged_blocks[at]
                }
            })
            .collect();
        self.job.block_sizes = BlockSizes { read: blocks[0], write: blocks[1], trim: blocks[2] };
        if let Mix::ReadWrite { read_percent } = &mut self.job.pattern.mix {
            *read_percent = self.read_percent;
        }
        if !self.job.filenames.is_empty() {
            self.job.nrfiles = self.job.filenames.len() as u32;
        }
        self.job.depth = self.job.depth.limited(self.job.method);
        // As in fio: what is read beforehand is not dropped again.
        self.job.invalidate &= !self.job.pre_read;
        self.job.seed = match (self.randseed, self.randrepeat) {
            (Some(seed), _) => SeedRule::Repeat(seed),
            (None, true) => SeedRule::Repeat(FIO_SEED),
            (None, false) => SeedRule::Trial,
        };
        let mut wrong = contradictions(&self.job);
        let parts = [self.method_contradictions(), self.finish_placement(), self.finish_pace()].concat();
        wrong.extend(parts.into_iter().map(|message| (ProblemKind::Inconsistent, message)));
        wrong.extend(self.finish_content());
        self.job.buffers = match (self.zero, self.refill, self.scramble) {
            (true, _, _) => BufferFill::Zero,
            (_, Some(true), _) => BufferFill::Refill,
            (_, _, true) => BufferFill::Scrambled,
            _ => BufferFill::Fixed,
        };
        let problems: Vec<Problem> = wrong
            .into_iter()
            .map(|(kind, message)| Problem {
                place: section.place.clone(),
                kind,
                message: format!("[{}] {message}", section.name),
            })
            .collect();
        if problems.is_empty() { Ok(self.job) } else { Err(problems) }
    }
}

impl Depth {
    /// fio's corrections (`fixup_options`): synchronous methods keep one I/O in flight, batches fit into the depth.
    fn limited(self, method: IoMethod) -> Depth {
        let iodepth = if method.is_asynchronous() { self.iodepth } else { 1 };
        let within = |count: u32| if count == 0 { iodepth } else { count.min(iodepth) };
        let complete_min = self.complete_min.min(iodepth);
        Depth {
            iodepth,
            asked: self.iodepth,
            submit: within(self.submit),
            complete_min,
            complete_max: self.complete_max.clamp(complete_min.max(1), iodepth),
            low: within(self.low),
        }
    }
}

#[cfg(test)]
mod tests;
