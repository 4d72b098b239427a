//! The functions of programs by address.
//!
//! Enters: addresses outside the kernel, of processes that still run. Leaves: where in which file each lies, and in the end the names of the
//! functions there. It must not know what the functions do.
//!
//! What a process has mapped (`/proc/PID/maps`) is read when an address of it is met first, after an exec, and when an address is met that lies
//! nowhere: a library was loaded. Addresses of a process that has ended before they were read stay without a place.
//!
//! Files are data from elsewhere. Only those of root and of this user are read; a name is demangled up to a limit, which some would pass by far.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::rc::Rc;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolizer};
use cpp_demangle::DemangleOptions;

use crate::sys::private_directory::is_trusted_owner;
use crate::sys::regular_file;

/// Between two readings of what a process has mapped: programs that make code as they run have addresses that lie in no file.
const AGAIN_NS: u64 = 100_000_000;
/// Processes that are remembered.
const MOST_PROCESSES: usize = 4096;
/// Bytes of a name in a file, and of what is made of it.
const LONGEST_SYMBOL: usize = 4096;
const LONGEST_NAME: usize = 200;

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
    /// The place of each in `files`.
    known: HashMap<Mapped, u32>,
    processes: HashMap<u32, Process>,
}

/// A file with code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
    /// The inode of what it runs.
    program: Option<u64>,
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
        let Some((innermost, callers)) = addresses.split_first() else { return Vec::new() };
        self.follow(process, *innermost, now_ns);
        let called = callers.iter().map(|address| address.wrapping_sub(1));
        std::iter::once(*innermost).chain(called).map_while(|address| self.spot(process, address)).collect()
    }

    fn spot(&self, process: u32, address: u64) -> Option<Spot> {
        let code = &self.processes.get(&process)?.code;
        let at = code.partition_point(|code| code.start <= address).checked_sub(1)?;
        let found = code.get(at).filter(|code| address < code.end)?;
        // Code that a program makes as it runs lies in no file: all of it is one place.
        let is_in_a_file = self.files.get(found.file as usize).is_some_and(|mapped| mapped.inode != 0);
        let offset = if is_in_a_file { (address - found.start).wrapping_add(found.offset) } else { 0 };
        Some(Spot { file: found.file, offset })
    }

    /// Reads what a process has mapped where what is known of it cannot hold: it runs another program, or this address, which is surely one of
    /// code, lies nowhere.
    fn follow(&mut self, process: u32, address: u64, now_ns: u64) {
        let program = std::fs::metadata(format!("/proc/{process}/exe")).map(|found| found.ino()).ok();
        if let Some(known) = self.processes.get(&process) {
            // What has ended runs what it ran.
            let is_same = program.is_none() || program == known.program;
            let is_early = now_ns < known.read_ns.saturating_add(AGAIN_NS);
            if is_same && (is_early || self.spot(process, address).is_some()) {
                return;
            }
        }
        let text = std::fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
        // It has ended.
        if text.is_empty() {
            return;
        }
        let code = self.code(&String::from_utf8_lossy(&text));
        if self.processes.len() >= MOST_PROCESSES {
            let oldest = self.processes.iter().min_by_key(|(_, process)| process.read_ns).map(|(id, _)| *id);
            oldest.and_then(|oldest| self.processes.remove(&oldest));
        }
        self.processes.insert(process, Process { code, read_ns: now_ns, program });
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
        if let Some(known) = self.known.get(&mapped) {
            return *known;
        }
        let place = self.files.len() as u32;
        self.files.push(mapped.clone());
        self.known.insert(mapped, place);
        place
    }

    /// The names of the functions at these places: of one without a name that of its file, `[fio]`.
    pub(in crate::observe) fn names(&self, spots: impl Iterator<Item = Spot>) -> HashMap<Spot, Rc<str>> {
        let mut by_file: HashMap<u32, Vec<Spot>> = HashMap::new();
        spots.for_each(|spot| by_file.entry(spot.file).or_default().push(spot));
        let mut names = HashMap::new();
        for (file, mut spots) in by_file {
            let Some(mapped) = self.files.get(file as usize) else { continue };
            spots.sort_unstable();
            spots.dedup();
            let found = mapped.functions(&spots);
            let nameless: Rc<str> = mapped.nameless().into();
            for (place, spot) in spots.into_iter().enumerate() {
                let name = found.get(place).and_then(Option::as_ref).unwrap_or(&nameless);
                names.insert(spot, Rc::clone(name));
            }
        }
        names
    }
}

impl Mapped {
    /// The functions at these places; empty: the file has no names, is another one by now, or belongs to somebody else.
    fn functions(&self, spots: &[Spot]) -> Vec<Option<Rc<str>>> {
        let is_it = |file: &File| {
            let found = file.metadata();
            found.is_ok_and(|found| found.ino() == self.inode && is_trusted_owner(found.uid()))
        };
        let Some(file) = regular_file::open(&self.path).ok().filter(is_it) else { return Vec::new() };
        // One for each file: it keeps what it has read by the name, and descriptors are used again.
        let symbolizer = Symbolizer::builder().enable_code_info(false).enable_inlined_fns(false).build();
        let source = Source::Elf(Elf::new(format!("/proc/self/fd/{}", file.as_raw_fd())));
        let offsets: Vec<u64> = spots.iter().map(|spot| spot.offset).collect();
        let found = symbolizer.symbolize(&source, Input::FileOffset(&offsets)).unwrap_or_default();
        let mut known: HashMap<&str, Option<Rc<str>>> = HashMap::new();
        let mut name = |symbol| known.entry(symbol).or_insert_with_key(|symbol| demangled(symbol)).clone();
        found.iter().map(|symbol| name(symbol.as_sym().map(|symbol| &*symbol.name)?)).collect()
    }

    fn nameless(&self) -> String {
        let name = self.path.to_string_lossy();
        let name = name.strip_suffix(" (deleted)").unwrap_or(&name);
        match name.rsplit('/').next() {
            // `[vdso]`.
            _ if name.starts_with('[') => name.to_owned(),
            Some("") | None => "[no file]".to_owned(),
            Some(file) => format!("[{file}]"),
        }
    }
}

/// A name as its language writes it, without parameters, up to the limit; `None`: it is empty.
fn demangled(symbol: &str) -> Option<Rc<str>> {
    let mut name = Limited(String::new());
    if symbol.len() <= LONGEST_SYMBOL {
        // What is too long is kept as far as it goes.
        if let Ok(rust) = rustc_demangle::try_demangle(symbol) {
            let _ = write!(name, "{rust:#}");
        } else if symbol.starts_with("_Z")
            && let Ok(cpp) = cpp_demangle::Symbol::new(symbol)
        {
            let options = DemangleOptions::new().no_params().no_return_type();
            let failed = cpp.structured_demangle(&mut name, &options).is_err();
            if failed && name.0.len() < LONGEST_NAME {
                name.0.clear();
            }
        }
    }
    if name.0.is_empty() {
        let _ = name.write_str(symbol);
    }
    (!name.0.is_empty()).then(|| name.0.into())
}

/// Text of at most [`LONGEST_NAME`] bytes.
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = LONGEST_NAME - self.0.len();
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        if text.len() <= room {
            return Ok(());
        }
        // Where the last letter would not fit, too: a full name is known by its length.
        self.0.extend(std::iter::repeat_n('.', LONGEST_NAME - self.0.len()));
        Err(std::fmt::Error)
    }
}

#[cfg(test)]
impl Spot {
    /// Somewhere in some file.
    pub(in crate::observe) fn at(offset: u64) -> Spot {
        Spot { file: 0, offset }
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
        // No process has so high a number.
        let process = u32::MAX;
        programs.processes.insert(process, Process { code, read_ns: 0, program: None });
        let stack = [0x5566_f000_2010, 0x7f00_0000_0001, 0x7ffd_0000_0020, 0x10, 0x5566_f000_2010];
        let spots = programs.stack(process, &stack, 1);
        let at: Vec<u64> = spots.iter().map(|spot| spot.offset).collect();
        assert_eq!(at, [0x2010, 0, 0], "up to what is no code, of which two lie in no file");
        let names = programs.names(spots.iter().copied());
        let names: Vec<&str> = spots.iter().map(|spot| &*names[spot]).collect();
        assert_eq!(names, ["[a b]", "[no file]", "[vdso]"], "no such files");
        assert!(programs.stack(process, &[0x5566_f000_0010], 1).is_empty(), "that is no code");
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
        let name = spots.first().and_then(|spot| names.get(spot));
        assert!(name.is_some_and(|name| name.ends_with("a_function_of_this_program")), "{name:?}");
    }

    #[test]
    fn a_process_that_executes_another_program_is_read_again() {
        let mut programs = Programs::default();
        let own = std::process::id();
        programs.processes.insert(own, Process { code: Vec::new(), read_ns: 1, program: Some(0) });
        let address = a_function_of_this_program() as u64 + 1;
        assert_eq!(programs.stack(own, &[address], 2).len(), 1);
        // It was read a moment ago, and runs the same.
        programs.processes.get_mut(&own).unwrap().code.clear();
        assert!(programs.stack(own, &[address], 3).is_empty());
        assert_eq!(programs.stack(own, &[address], 2 + AGAIN_NS).len(), 1, "a library may have been loaded");
    }

    #[test]
    fn names_are_demangled_up_to_a_limit() {
        let of = |symbol: &str| demangled(symbol).map(|name| name.to_string());
        assert_eq!(of("crc32c").as_deref(), Some("crc32c"));
        let get = "_ZN7rocksdb6DBImpl3GetERKNS_11ReadOptionsE";
        assert_eq!(of(get).as_deref(), Some("rocksdb::DBImpl::Get"));
        assert_eq!(of("_ZN4core3fmt5write17h0123456789abcdefE").as_deref(), Some("core::fmt::write"));
        assert_eq!(of(""), None);
        assert_eq!(of("f").as_deref(), Some("f"), "that is no type");
        // Each argument is the pair of the one before with itself: 2^30 of the first.
        let pairs: String = (2..32).map(|number| format!("S0_I{0}{0}E", substitution(number))).collect();
        let doubled = of(&format!("_Z1fI1AIiiE{pairs}EvT_")).unwrap_or_default();
        assert!(doubled.starts_with("f<A<int, int>, A<A<int, int>, A<int, int> >, "), "{doubled}");
        assert_eq!(doubled.len(), LONGEST_NAME);
        assert_eq!(of(&"x".repeat(10_000)).map(|name| name.len()), Some(LONGEST_NAME));
    }

    /// What stands for an earlier part of a mangled name.
    fn substitution(number: usize) -> String {
        match number.checked_sub(1) {
            None => "S_".to_owned(),
            Some(before) => {
                format!("S{}_", char::from_digit(before as u32, 36).unwrap().to_ascii_uppercase())
            }
        }
    }

    #[test]
    fn what_is_no_program_has_no_names() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("program");
        let whole = std::fs::read("/proc/self/exe").unwrap();
        let mut damaged = whole[..whole.len() / 2].to_vec();
        damaged[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
        for bytes in [b"".as_slice(), b"\x7fELF", &whole[..64], &damaged] {
            std::fs::write(&path, bytes).unwrap();
            let mapped = Mapped { path: path.clone(), inode: std::fs::metadata(&path).unwrap().ino() };
            let found = mapped.functions(&[Spot::at(0x2000)]);
            assert!(found.iter().all(Option::is_none), "{} bytes: {found:?}", bytes.len());
        }
        let gone = Mapped { path: PathBuf::from("/usr/bin/a b (deleted)"), inode: 7 };
        assert_eq!((gone.functions(&[]).len(), gone.nameless()), (0, "[a b]".to_owned()));
    }

    #[test]
    fn another_file_of_the_name_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("program");
        std::fs::copy("/proc/self/exe", &path).unwrap();
        let found = std::fs::metadata(&path).unwrap();
        let mapped = Mapped { path: path.clone(), inode: found.ino() + 1 };
        assert_eq!(mapped.functions(&[Spot::at(0x2000)]), []);
    }
}
