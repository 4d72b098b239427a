//! What an Arm processor is called: its registers say who made it and which design it is, by number.
//!
//! Enters: `/proc/cpuinfo`. Leaves: a name, or the numbers where no name is known.

use std::collections::BTreeSet;

/// Implementer, part, name. Arm's "Main ID Register" and the kernel's `arch/arm64/include/asm/cputype.h`.
const DESIGNS: [(u32, u32, &str); 23] = [
    (0x41, 0xd03, "Cortex-A53"),
    (0x41, 0xd05, "Cortex-A55"),
    (0x41, 0xd07, "Cortex-A57"),
    (0x41, 0xd08, "Cortex-A72"),
    (0x41, 0xd09, "Cortex-A73"),
    (0x41, 0xd0a, "Cortex-A75"),
    (0x41, 0xd0b, "Cortex-A76"),
    (0x41, 0xd0c, "Neoverse N1"),
    (0x41, 0xd0d, "Cortex-A77"),
    (0x41, 0xd40, "Neoverse V1"),
    (0x41, 0xd41, "Cortex-A78"),
    (0x41, 0xd46, "Cortex-A510"),
    (0x41, 0xd49, "Neoverse N2"),
    (0x41, 0xd4f, "Neoverse V2"),
    (0x41, 0xd83, "Neoverse V3AE"),
    (0x41, 0xd84, "Neoverse V3"),
    (0x41, 0xd8e, "Neoverse N3"),
    (0x43, 0x0a1, "ThunderX"),
    (0x43, 0x0af, "ThunderX2"),
    (0x48, 0xd01, "Kunpeng 920"),
    (0x4e, 0x004, "Carmel"),
    (0xc0, 0xac3, "Ampere-1"),
    (0xc0, 0xac4, "Ampere-1A"),
];
/// Makers of whose designs the name says enough.
const MAKERS: [(u32, &str); 2] = [(0x61, "Apple"), (0x51, "Qualcomm")];

/// The processors' name; of several kinds each. `None`: the text has no such numbers.
pub(super) fn model(cpuinfo: &str) -> Option<String> {
    let number = |line: &str, name: &str| {
        let (key, value) = line.split_once(':')?;
        let digits = value.trim().strip_prefix("0x").filter(|_| key.trim() == name)?;
        u32::from_str_radix(digits, 16).ok()
    };
    let (mut implementer, mut names) = (None, BTreeSet::new());
    for line in cpuinfo.lines() {
        implementer = number(line, "CPU implementer").or(implementer);
        if let (Some(maker), Some(part)) = (implementer, number(line, "CPU part")) {
            names.insert(name(maker, part));
        }
    }
    (!names.is_empty()).then(|| names.into_iter().collect::<Vec<_>>().join(" + "))
}

fn name(maker: u32, part: u32) -> String {
    if let Some((.., name)) = DESIGNS.iter().find(|design| (design.0, design.1) == (maker, part)) {
        return (*name).to_owned();
    }
    match MAKERS.iter().find(|known| known.0 == maker) {
        Some((_, name)) => format!("{name} (part {part:#05x})"),
        None => format!("Arm processor (implementer {maker:#04x}, part {part:#05x})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_has_its_name_or_its_numbers() {
        let of = |parts: &[(&str, &str)]| {
            let one = |(maker, part): &(&str, &str)| {
                format!(
                    "processor\t: 0\nCPU implementer\t: {maker}\nCPU architecture: 8\nCPU part\t: {part}\n\n"
                )
            };
            model(&parts.iter().map(one).collect::<String>())
        };
        assert_eq!(of(&[("0x41", "0xd0c"), ("0x41", "0xd0c")]).as_deref(), Some("Neoverse N1"));
        assert_eq!(of(&[("0x41", "0xd08"), ("0x41", "0xd03")]).as_deref(), Some("Cortex-A53 + Cortex-A72"));
        assert_eq!(of(&[("0x61", "0x022")]).as_deref(), Some("Apple (part 0x022)"));
        assert_eq!(of(&[("0x12", "0xfff")]).as_deref(), Some("Arm processor (implementer 0x12, part 0xfff)"));
        assert_eq!(model("processor : 0\nmodel name : Fast 9\n"), None);
    }
}
