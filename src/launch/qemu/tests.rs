use super::*;

/// A trial in a guest of a kernel in this directory, with this device.
fn request(directory: &Path, kernel: &str, device: &str) -> Request {
    std::fs::write(directory.join(kernel), "x").unwrap();
    let mut setup = crate::target::Setup::default();
    for (key, value) in [("kernel", kernel), ("device", device)] {
        setup.settings.set(key, value, directory).unwrap();
    }
    Request {
        protocol: super::super::PROTOCOL,
        engine: super::super::EngineKind::Null,
        task: super::super::Task::default(),
        target: super::super::TargetSpec { setup: Some(setup), ..Default::default() },
        rehearsal: false,
        observe: Vec::new(),
        before: None,
        after: None,
    }
}

#[test]
fn what_hangs_in_a_guest_ends_with_it() {
    let mut reply = Reply::failed(
        "the job passed its limit; process 57 cannot be ended: it hangs in the kernel",
        String::new(),
    );
    assert!(!ends_with_its_guest(&mut reply));
    reply.why.left = vec![57];
    if let Answer::Failed { kind, .. } = &mut reply.answer {
        *kind = FailureKind::Lasting;
    }
    assert!(ends_with_its_guest(&mut reply) && reply.why.left.is_empty());
    let Answer::Failed { kind, reason, .. } = &reply.answer else { panic!("{reply:?}") };
    assert_eq!(*kind, FailureKind::Passing);
    assert!(reason.ends_with("it hangs in the kernel of the guest, which is given up"), "{reason}");
}

#[test]
fn guests_of_earlier_rounds_need_no_room() {
    let directory = tempfile::tempdir().unwrap();
    let mut guests = Guests::new();
    let of_round = |guests: &Guests| guests.kinds.iter().filter(|kind| kind.of_this_round).count();
    for step in 0..40 {
        guests.expect(&request(directory.path(), &format!("vmlinuz-{step}"), "ram:64m")).unwrap();
        assert_eq!(of_round(&guests), 1);
        guests.round_ends();
    }
    assert_eq!((guests.kinds.len(), of_round(&guests)), (40, 0));
    guests.expect(&request(directory.path(), "vmlinuz-0", "ram:64m")).unwrap();
    assert_eq!((guests.kinds.len(), of_round(&guests)), (40, 1));
}

#[test]
fn a_guest_is_shared_where_no_trial_is_run_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let in_guest = |kernel: &str| request(directory.path(), kernel, "ram:64m");
    let here = Request { target: super::super::TargetSpec::default(), ..in_guest("vmlinuz") };
    let is_shared = |requests: &[&Request]| {
        let mut guests = Guests::new();
        requests.iter().for_each(|request| guests.expect(request).unwrap());
        (guests.is_shared(), guests.forecast().map(|ahead| ahead.once))
    };
    let (one, other) = (in_guest("vmlinuz"), in_guest("vmlinuz-other"));
    assert_eq!(is_shared(&[&one, &one]), (true, Some(true)));
    assert_eq!(is_shared(&[&one, &other]), (false, Some(false)));
    assert_eq!(is_shared(&[&one, &here]), (false, Some(false)), "an arm here, one there");
    assert_eq!(is_shared(&[&here]), (false, None));
}

#[test]
fn trials_that_want_other_pmem_run_in_other_guests() {
    let directory = tempfile::tempdir().unwrap();
    let asked = |device: &str| request(directory.path(), "vmlinuz", device);
    let mut guests = Guests::new();
    let devices = ["ram:64m", "pmem:128m", "pmem:1g", "nvme:64m", "pmem:100m", "pmem:1g"];
    devices.iter().for_each(|device| guests.expect(&asked(device)).unwrap());
    let of = |device: &str| {
        let request = asked(device);
        let (settings, pmem) = guest_of(&request).unwrap();
        guests.kinds.iter().position(|kind| kind.holds(settings, pmem)).unwrap()
    };
    assert_eq!(devices.map(of), [0, 0, 1, 0, 0, 1]);
    let sizes: Vec<u64> = guests.kinds.iter().map(|kind| kind.needs.pmem_bytes).collect();
    assert_eq!(sizes, [128 << 20, 1 << 30]);
    assert_eq!(guests.kinds[0].needs.disks.len(), 1);
}

#[test]
fn time_stolen_from_the_host_is_stolen_from_its_guests() {
    let seen = |steal_s, steal_share| Disturbance {
        steal_s,
        steal_share,
        foreign_read_bytes: Some(7),
        ..Disturbance::default()
    };
    let (calm, robbed) = (seen(0.0, 0.0), seen(2.0, 0.2));
    for (inside, here) in [(&calm, &robbed), (&robbed, &calm)] {
        let both = worse(*inside, here);
        assert_eq!((both.steal_s, both.steal_share, both.foreign_read_bytes), (2.0, 0.2, Some(7)));
    }
    assert_eq!(worse(calm, &calm), calm);
}

#[test]
fn what_needs_no_kernel_is_looked_at_before_one_is_built() {
    let directory = tempfile::tempdir().unwrap();
    let mut asked = request(directory.path(), "vmlinuz", "virtio_blk:64m");
    let settings = &mut asked.target.setup.as_mut().unwrap().settings.guest;
    settings.kernel = None;
    settings.build.source = Some(directory.path().to_owned());
    let check = |memory: u64| {
        let mut asked = asked.clone();
        asked.target.setup.as_mut().unwrap().settings.guest.memory = Some(memory);
        let mut guests = Guests::new();
        guests.expect(&asked).unwrap();
        guests.check(directory.path()).map_err(|unready| unready.reason)
    };
    let said = check(1 << 50).unwrap_err();
    if machine::emulator().is_err() {
        assert!(said.contains("there is no qemu"), "{said}");
        return;
    }
    assert!(said.contains("is larger than this machine"), "{said}");
    assert_eq!(check(256 << 20), Ok(()));
}

#[test]
fn guests_of_one_trial_each_need_room_for_one() {
    let directory = tempfile::tempdir().unwrap();
    let asked = |kernel: &str, device: &str| request(directory.path(), kernel, device);
    let mut guests = Guests::new();
    for kernel in ["a", "b"] {
        guests.expect(&asked(kernel, "ram:64m")).unwrap();
    }
    assert_eq!(guests.kinds.iter().map(|kind| kind.cells).collect::<Vec<_>>(), [1, 1]);
    guests.expect(&asked("b", "virtio_blk:64m")).unwrap();
    assert_eq!(guests.kinds.iter().map(|kind| kind.cells).collect::<Vec<_>>(), [1, 2]);
    assert!(guests.is_wanted(0, &[asked("a", "ram:64m")]) && !guests.is_wanted(1, &[asked("a", "ram:64m")]));
    assert!(guests.is_wanted(1, &[asked("a", "ram:64m"), asked("b", "virtio_blk:64m")]));
}

#[test]
fn a_run_goes_on_with_what_its_earlier_guests_were_run_by() {
    let mut guests = Guests::new();
    let mut facts = HostFacts::default();
    guests.goes_on(&facts).unwrap();
    assert!(!guests.settled, "nothing is known");
    facts.set(ACCELERATOR, Accelerator::Tcg.name());
    guests.goes_on(&facts).unwrap();
    assert_eq!((guests.accelerator, guests.settled), (Accelerator::Tcg, true));
    facts.set(ACCELERATOR, Accelerator::Kvm.name());
    let is_here = Accelerator::likely() == Accelerator::Kvm;
    let went_on = guests.goes_on(&facts);
    assert_eq!(went_on.is_ok(), is_here, "{went_on:?}");
    assert!(
        went_on.err().is_none_or(|refused| refused.reason.starts_with("the earlier trials ran under KVM"))
    );
}

#[test]
fn a_trial_of_known_length_has_a_limit_in_its_guest() {
    let directory = tempfile::tempdir().unwrap();
    let mut asked = request(directory.path(), "vmlinuz", "ram:64m");
    assert_eq!(limit_of(&asked), None);
    asked.task.given_up_after_s = Some(140.0);
    assert_eq!(limit_of(&asked), Some(Duration::from_secs(140)));
    asked.task.timeout_s = Some(10.0);
    assert_eq!(limit_of(&asked), Some(Duration::from_secs(640)), "the one that was named");
}

#[test]
fn other_modules_of_a_kernel_have_another_digest() {
    let directory = tempfile::tempdir().unwrap();
    let asked = request(directory.path(), "vmlinuz", "ram:64m");
    let mut image = vec![0_u8; 0x400];
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
    image[0x300..0x304].copy_from_slice(b"6.98");
    std::fs::write(directory.path().join("vmlinuz"), image).unwrap();
    let modules = directory.path().join("lib/modules/6.98");
    std::fs::create_dir_all(&modules).unwrap();
    for name in ["virtio_pci", "virtio_console", "brd"] {
        std::fs::write(modules.join(format!("{name}.ko")), name).unwrap();
    }
    let here = Request { target: super::super::TargetSpec::default(), ..asked.clone() };
    let digests = || module_digests(&[here.clone(), asked.clone()]).unwrap();
    let before = digests();
    assert!(before[0].is_none() && before[1].is_some());
    assert_eq!(digests(), before);
    std::fs::write(modules.join("brd.ko"), "other").unwrap();
    assert_ne!(digests()[1], before[1]);
}
