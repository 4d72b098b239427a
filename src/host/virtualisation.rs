//! Whether the machine is a virtual one, by what its firmware, its device tree and its hypervisor say: with or without the flags of an
//! x86 processor.

use super::roots::Roots;

/// How firmware made for guests begins the name of the machine or of its maker. As in systemd's `virt.c`, without makers that also sell
/// machines of metal.
const OF_GUESTS: [&str; 19] = [
    "KVM", "QEMU", "VMware", "VMW", "innotek GmbH", "VirtualBox", "Xen", "HVM domU", "Bochs", "Parallels",
    "BHYVE", "OpenStack", "KubeVirt", "Amazon EC2", "Google Compute Engine", "Apple Virtualization",
    "Virtual Machine", "Alibaba Cloud ECS", "DigitalOcean",
];
/// Device trees that name a machine of QEMU, or a hypervisor.
const TREES_OF_GUESTS: [&str; 3] = ["linux,dummy-virt", "qemu,", "xen,xenvm"];

/// `none`, `virtual machine`, or that with its name; `None`: nothing says anything. `flagged` is what an x86 processor says.
pub(super) fn virtualisation(roots: &Roots, flagged: Option<bool>) -> Option<String> {
    let dmi = |name: &str| roots.sys(&format!("class/dmi/id/{name}"));
    let named: Vec<String> = ["sys_vendor", "product_name"].into_iter().filter_map(dmi).collect();
    let tree = |name: &str| Some(roots.proc(&format!("device-tree/{name}"))?.replace('\0', " "));
    let (hypervisor, machine) = (tree("hypervisor/compatible"), tree("compatible"));
    let kind = roots.sys("hypervisor/type");
    let is_guest = is_of_guest(&named)
        || hypervisor.is_some()
        || machine.as_ref().is_some_and(|name| TREES_OF_GUESTS.iter().any(|guest| name.contains(guest)))
        // The first domain of Xen has all of the machine.
        || kind.is_some() && !roots.proc("xen/capabilities").is_some_and(|what| what.contains("control_d"));
    let knows = flagged.is_some() || !named.is_empty() || machine.is_some() || kind.is_some();
    if flagged != Some(true) && !is_guest {
        return knows.then(|| "none".to_owned());
    }
    let product = Some(named.join(" ")).filter(|product| !product.is_empty());
    let product = product.or(kind).or(hypervisor).or(machine);
    Some(match product.as_deref().map(str::trim) {
        None => "virtual machine".to_owned(),
        Some(product) => format!("virtual machine ({product})"),
    })
}

fn is_of_guest(named: &[String]) -> bool {
    let is_metal = named.iter().any(|name| name.ends_with(".metal"));
    let of_guest = |name: &String| OF_GUESTS.iter().any(|guest| name.starts_with(guest));
    !is_metal && named.iter().any(of_guest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(flagged: Option<bool>, files: &[(&str, &str)]) -> Option<String> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        virtualisation(&Roots::under(root.path()), flagged)
    }

    #[test]
    fn a_guest_is_known_without_flags_of_the_processor() {
        let (vendor, product) = ("sys/class/dmi/id/sys_vendor", "sys/class/dmi/id/product_name");
        for (flagged, files, expected) in [
            (None, &[][..], None),
            (Some(false), &[], Some("none")),
            (Some(true), &[], Some("virtual machine")),
            (Some(true), &[(vendor, "ACME\n")], Some("virtual machine (ACME)")),
            (
                None,
                &[(vendor, "QEMU\n"), (product, "KVM Virtual Machine\n")],
                Some("virtual machine (QEMU KVM Virtual Machine)"),
            ),
            (
                None,
                &[(vendor, "Amazon EC2\n"), (product, "m7g.large\n")],
                Some("virtual machine (Amazon EC2 m7g.large)"),
            ),
            (None, &[(vendor, "Amazon EC2\n"), (product, "m7g.metal\n")], Some("none")),
            (None, &[(vendor, "Microsoft Corporation\n"), (product, "Surface\n")], Some("none")),
            (Some(false), &[(vendor, "QEMU\n")], Some("virtual machine (QEMU)")),
            (
                None,
                &[("proc/device-tree/compatible", "linux,dummy-virt\0")],
                Some("virtual machine (linux,dummy-virt)"),
            ),
            (None, &[("proc/device-tree/compatible", "raspberrypi,4\0brcm,x\0")], Some("none")),
            (
                None,
                &[("proc/device-tree/hypervisor/compatible", "linux,kvm\0")],
                Some("virtual machine (linux,kvm)"),
            ),
            (None, &[("sys/hypervisor/type", "xen\n")], Some("virtual machine (xen)")),
            (
                None,
                &[("sys/hypervisor/type", "xen\n"), ("proc/xen/capabilities", "control_d\n")],
                Some("none"),
            ),
        ] {
            assert_eq!(seen(flagged, files).as_deref(), expected, "{flagged:?} {files:?}");
        }
    }
}
