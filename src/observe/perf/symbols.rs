//! The kernel's functions by address.
//!
//! Enters: `/proc/kallsyms`. Leaves: the function that an address lies in. It must not know what the functions do.

/// The kernel's functions, ascending.
#[derive(Clone, Debug, Default)]
pub(in crate::observe) struct Symbols {
    starts: Vec<u64>,
    /// Where the name of each lies in `names`.
    ends: Vec<usize>,
    names: String,
    /// Functions that take locks or change tasks lie between these.
    of_locks: Vec<(u64, u64)>,
}

/// A function: its place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::observe) struct Function(u32);

/// Sections of functions that take locks and change tasks (include/asm-generic/vmlinux.lds.h).
const LOCK_SECTIONS: [(&str, &str); 3] = [
    ("__sched_text_start", "__sched_text_end"),
    ("__lock_text_start", "__lock_text_end"),
    ("__spinlock_text_start", "__spinlock_text_end"),
];

impl Symbols {
    /// Those of the kernel that runs; empty where it does not show addresses to this user.
    pub(in crate::observe) fn of_the_kernel() -> Symbols {
        Symbols::parse(&std::fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    /// Those in the text of that file.
    pub(in crate::observe) fn parse(text: &str) -> Symbols {
        let mut all: Vec<(u64, &str)> = Vec::new();
        let mut bounds: Vec<(&str, u64)> = Vec::new();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            // Hidden addresses are all zero.
            if address == 0 || !matches!(kind, "t" | "T" | "w" | "W") {
                continue;
            }
            if LOCK_SECTIONS.iter().any(|(start, end)| name == *start || name == *end) {
                bounds.push((name, address));
            } else if !is_a_mark(name) {
                // `f.constprop.0` is f as the compiler has changed it.
                all.push((address, name.split('.').next().unwrap_or(name)));
            }
        }
        all.sort_by_key(|(address, _)| *address);
        // Of several names of one function the first stays.
        all.dedup_by_key(|(address, _)| *address);
        let of = |wanted: &str| bounds.iter().find(|(name, _)| *name == wanted).map(|(_, address)| *address);
        let of_locks = LOCK_SECTIONS.iter().filter_map(|(start, end)| Some((of(start)?, of(end)?))).collect();
        let mut symbols = Symbols { of_locks, ..Symbols::default() };
        for (address, name) in all {
            symbols.starts.push(address);
            symbols.names.push_str(name);
            symbols.ends.push(symbols.names.len());
        }
        symbols
    }

    /// Whether addresses have names.
    pub(in crate::observe) fn are_known(&self) -> bool {
        !self.starts.is_empty()
    }

    /// The function that an address lies in.
    pub(in crate::observe) fn function(&self, address: u64) -> Option<Function> {
        let after = self.starts.partition_point(|start| *start <= address);
        Some(Function(u32::try_from(after.checked_sub(1)?).ok()?))
    }

    /// Its name.
    pub(in crate::observe) fn name(&self, function: Function) -> &str {
        let at = function.0 as usize;
        let from = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(at).and_then(|end| self.names.get(from..*end)).unwrap_or("?")
    }

    /// Whether a stack is one of io_uring's own threads.
    pub(in crate::observe) fn are_of_io_uring(&self, stack: &[u64]) -> bool {
        let functions = stack.iter().filter_map(|address| self.function(*address));
        functions.into_iter().any(|function| super::is_io_urings_thread(self.name(function)))
    }

    /// Whether an address lies in a function that takes locks or changes tasks.
    pub(in crate::observe) fn takes_locks(&self, address: u64) -> bool {
        self.of_locks.iter().any(|(start, end)| (*start..*end).contains(&address))
    }
}

/// Names of places that are no functions.
fn is_a_mark(name: &str) -> bool {
    name.starts_with("__pfx_")
        || name.starts_with("__cfi_")
        || name.ends_with("_text_start")
        || name.ends_with("_text_end")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "ffffffff81000000 T _text\nffffffff816bb3b0 T __pfx_vfs_write\nffffffff816bb3c0 T vfs_write\n\
        ffffffff817aa210 t ext4_buffered_write_iter\nffffffff82203140 T __lock_text_start\n\
        ffffffff82203140 T _raw_spin_lock\nffffffff82204b88 T __lock_text_end\nffffffff83000000 D jiffies\n\
        ffffffffc0001000 t zram_submit_bio.isra.0\t[zram]\n";

    #[test]
    fn an_address_lies_in_the_function_that_begins_before_it() {
        let symbols = Symbols::parse(KALLSYMS);
        let name = |address| symbols.function(address).map(|function| symbols.name(function).to_owned());
        assert_eq!(name(0xffff_ffff_816b_b3c0).as_deref(), Some("vfs_write"));
        assert_eq!(name(0xffff_ffff_817a_a300).as_deref(), Some("ext4_buffered_write_iter"));
        assert_eq!(name(0xffff_ffff_c000_1010).as_deref(), Some("zram_submit_bio"));
        assert_eq!(name(0x1000), None);
        assert!(symbols.takes_locks(0xffff_ffff_8220_3150) && !symbols.takes_locks(0xffff_ffff_816b_b3c4));
    }

    #[test]
    fn hidden_addresses_are_no_symbols() {
        let symbols = Symbols::parse("0000000000000000 T _text\n0000000000000000 T vfs_write\n");
        assert!(!symbols.are_known() && symbols.function(0xffff_ffff_8100_0000).is_none());
    }

    #[test]
    fn this_kernels_functions_are_read() {
        let symbols = Symbols::of_the_kernel();
        assert!(!symbols.are_known() || symbols.starts.len() > 1000);
    }
}
