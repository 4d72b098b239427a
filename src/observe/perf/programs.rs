//! The functions of programs by address.
//!
//! Enters: addresses outside the kernel, of processes that still run. Leaves: where in which file each lies, and in the end the names of the
//! functions there. It must not know what the functions do.
//!
//! What a process has mapped (`/proc/PID/maps`) is read when an address of it is met first, and again when one is met that lies nowhere: after an
//! exec, or where a library was loaded. Addresses of a process that has ended before they were read stay without a place.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};

use crate::sys::regular_file;

/// Between two readings of what a process has mapped: programs that make code as they run have addresses that lie in no file.
const AGAIN_NS: u64 = 100_000_000;
/// Processes that are remembered. More than that are a load of short ones, which begin anew.
const MOST_PROCESSES: usize = 1024;

/// An address as a place in a file: of one function whichever process runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::observe) struct Spot {
    file: u32,
    offset: u64,
}

/// What processes have mapped.
#[derive(Debug, Default)]
pub(in crate::observe) struct Programs {
    files: Vec<Mapped>,
    processes: HashMap<u32, Process>,
}

/// A file with code.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mapped {
    path: PathBuf,
    /// Another file may have the name by the time that it is read, or have it where the process sees other mounts. The device says nothing: of
    /// btrfs and overlayfs the process's list has another one than the file.
    inode: u64,
}

#[derive(Debug)]
struct Process {
    /// Ascending.
    code: Vec<Code>,
    read_ns: u64,
}

/// Addresses with code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Code {
    start: u64,
    end: u64,
    /// Of its first byte in the file.
    offset: u64,
    file: u32,
}

impl Programs {
    /// Where the addresses of a stack lie, the innermost first, up to the first that is no code: without frame pointers what stands there is
    /// anything. A caller's address is the one behind its call, which may already be another function.
    pub(in crate::observe) fn stack(&mut self, process: u32, addresses: &[u64], now_ns: u64) -> Vec<Spot> {
        let called = addresses.iter().skip(1).map(|address| address.wrapping_sub(1));
        let all = addresses.first().copied().into_iter().chain(called);
        let mut spots = Vec::new();
        for (depth, address) in all.enumerate() {
            let found = self.spot(process, address).or_else(|| {
                // What stands for a caller is often none: only the innermost address is surely one.
                (depth == 0 && self.read(process, now_ns)).then(|| self.spot(process, address)).flatten()
            });
            let Some(spot) = found else { break };
            spots.push(spot);
        }
        spots
    }

    fn spot(&self, process: u32, address: u64) -> Option<Spot> {
        let code = &self.processes.get(&process)?.code;
        let at = code.partition_point(|code| code.start <= address).checked_sub(1)?;
        let found = code.get(at).filter(|code| address < code.end)?;
        Some(Spot { file: found.file, offset: address - found.start + found.offset })
    }

    /// Reads what a process has mapped, unless that was done a moment ago.
    fn read(&mut self, process: u32, now_ns: u64) -> bool {
        let known = self.processes.get(&process);
        if known.is_some_and(|known| now_ns < known.read_ns.saturating_add(AGAIN_NS)) {
            return false;
        }
        let text = std::fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
        let code = self.code(&String::from_utf8_lossy(&text));
        if self.processes.len() >= MOST_PROCESSES {
            self.processes.clear();
        }
        self.processes.insert(process, Process { code, read_ns: now_ns });
        true
    }

    /// What is code in the text of `/proc/PID/maps`.
    fn code(&mut self, text: &str) -> Vec<Code> {
        let mut code: Vec<Code> = text.lines().filter_map(|line| self.mapping(line)).collect();
        code.sort_by_key(|code| code.start);
        code
    }

    /// `START-END r-xp OFFSET MAJOR:MINOR INODE NAME`.
    fn mapping(&mut self, line: &str) -> Option<Code> {
        let hexadecimal = |word: &str| u64::from_str_radix(word, 16).ok();
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let is_code = words.next()?.contains('x');
        let offset = hexadecimal(words.next()?)?;
        let _device = words.next()?;
        let inode = words.next()?.parse().ok()?;
        let name = words.next().unwrap_or_default().trim_start();
        let mapped = Mapped { path: PathBuf::from(name), inode };
        let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
        is_code.then(|| Code { start, end, offset, file: self.file(mapped) })
    }

    fn file(&mut self, mapped: Mapped) -> u32 {
        let known = self.files.iter().position(|known| *known == mapped);
        known.unwrap_or_else(|| {
            self.files.push(mapped);
            self.files.len() - 1
        }) as u32
    }

    /// The names of the functions at these places: of one without a name that of its file, `[fio]`.
    pub(in crate::observe) fn names(&self, spots: impl Iterator<Item = Spot>) -> HashMap<Spot, String> {
        let mut by_file: HashMap<u32, Vec<Spot>> = HashMap::new();
        spots.for_each(|spot| by_file.entry(spot.file).or_default().push(spot));
        let mut names = HashMap::new();
        for (file, mut spots) in by_file {
            let Some(mapped) = self.files.get(file as usize) else { continue };
            spots.sort_unstable();
            spots.dedup();
            let found = mapped.functions(&spots);
            let named = spots.iter().zip(found.into_iter().map(Some).chain(std::iter::repeat(None)));
            let nameless = mapped.nameless();
            names.extend(
                named.map(|(spot, name)| (*spot, name.flatten().unwrap_or_else(|| nameless.clone()))),
            );
        }
        names
    }
}

impl Mapped {
    /// The functions at these places; empty: the file has no names, or is another one by now.
    fn functions(&self, spots: &[Spot]) -> Vec<Option<String>> {
        let is_it = |file: &File| file.metadata().is_ok_and(|found| found.ino() == self.inode);
        let Some(file) = regular_file::open(&self.path).ok().filter(is_it) else { return Vec::new() };
        // One for each file: it keeps what it has read by the name, and descriptors are used again.
        let symbolizer = Symbolizer::builder().enable_code_info(false).enable_inlined_fns(false).build();
        let opened = format!("/proc/self/fd/{}", file.as_raw_fd());
        let offsets: Vec<u64> = spots.iter().map(|spot| spot.offset).collect();
        let source = Source::Elf(Elf::new(opened));
        let found = symbolizer.symbolize(&source, Input::FileOffset(&offsets)).unwrap_or_default();
        let name = |symbol: &Symbolized<'_>| symbol.as_sym().map(|symbol| symbol.name.to_string());
        found.iter().map(name).collect()
    }

    fn nameless(&self) -> String {
        let name = self.path.to_string_lossy();
        match Path::new(&*self.path).file_name() {
            // `[vdso]`.
            _ if name.starts_with('[') => name.into_owned(),
            Some(file) => format!("[{}]", file.to_string_lossy()),
            None => "[no file]".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
        5566f0000000-5566f0002000 r--p 00000000 08:01 77                 /usr/bin/a b\n\
        5566f0002000-5566f0008000 r-xp 00002000 08:01 77                 /usr/bin/a b\n\
        7f0000000000-7f0000010000 r-xp 00000000 00:00 0\n\
        7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0                  [vdso]\n\
        no line of maps\n";

    #[test]
    fn an_address_lies_in_a_file() {
        let mut programs = Programs::default();
        let code = programs.code(MAPS);
        programs.processes.insert(5, Process { code, read_ns: 0 });
        let spots = programs.stack(
            5,
            &[0x5566_f000_2010, 0x7f00_0000_0001, 0x7ffd_0000_0020, 0x10, 0x5566_f000_2010],
            1,
        );
        let at: Vec<u64> = spots.iter().map(|spot| spot.offset).collect();
        assert_eq!(at, [0x2010, 0, 0x1f], "up to what is no code");
        let names = programs.names(spots.iter().copied());
        let names: Vec<&str> = spots.iter().map(|spot| names[spot].as_str()).collect();
        assert_eq!(names, ["[a b]", "[no file]", "[vdso]"], "no such files");
        assert!(programs.stack(5, &[0x5566_f000_0010], 1).is_empty(), "that is no code");
    }

    #[inline(never)]
    fn a_function_of_this_program() -> usize {
        std::hint::black_box(a_function_of_this_program as *const () as usize)
    }

    #[test]
    fn a_function_of_this_program_has_its_name() {
        let mut programs = Programs::default();
        let address = a_function_of_this_program() as u64 + 1;
        let spots = programs.stack(std::process::id(), &[address], 1);
        let names = programs.names(spots.iter().copied());
        let name = spots.first().and_then(|spot| names.get(spot)).map(String::as_str);
        assert!(name.is_some_and(|name| name.ends_with("a_function_of_this_program")), "{name:?}");
    }

    #[test]
    fn another_file_of_the_name_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("program");
        std::fs::copy("/proc/self/exe", &path).unwrap();
        let found = std::fs::metadata(&path).unwrap();
        let mapped = Mapped { path: path.clone(), inode: found.ino() + 1 };
        let spots = [Spot { file: 0, offset: 0x2000 }];
        assert_eq!(mapped.functions(&spots), []);
    }
}
