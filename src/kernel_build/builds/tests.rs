use std::path::Path;

use super::super::config::Configuration;
use super::super::fake;
use super::*;

/// The kernel of a tree with each of these patches.
fn builds(place: &Path, patches: &[(&str, &str)]) -> Builds {
    let root = place.join("source");
    fake::kernel(&root, "exit 0\n");
    let patch = |(name, text): &(&str, &str)| Patch::of(Path::new(name), text.as_bytes().to_vec()).unwrap();
    let all = patches.iter().map(|one| fake::build(&root, vec![patch(one)])).collect();
    Builds::of(all)
}

#[test]
fn a_second_revision_is_planned_as_a_whole_kernel_at_most() {
    let name = "a_second_revision_is_planned_as_a_whole_kernel_at_most";
    fake::alone(module_path!(), name, |place| {
        let mut both = builds(place, &[("a.patch", fake::PATCH), ("b.patch", fake::PATCH)]);
        // As another commit of the same repository has it.
        both.all[1].source.digest = "another".to_owned();
        let key = both.all[0].room_key().unwrap();
        assert_eq!(both.all[1].room_key().as_ref(), Some(&key));
        progress::remember(&key, 1500, std::time::Duration::from_secs(600));
        let plan = both.plan().unwrap_or_else(|error| vec![error.to_string()]);
        assert!(
            plan[0].ends_with(": about 10 min") && plan[1].ends_with(": at most about 10 min"),
            "{plan:?}"
        );
        assert!(plan[2].starts_with("together at most about 20 min"), "{plan:?}");
    });
}

#[test]
fn another_revision_that_was_built_earlier_is_no_start_either() {
    let name = "another_revision_that_was_built_earlier_is_no_start_either";
    fake::alone(module_path!(), name, |place| {
        let builds = builds(place, &[("a.patch", fake::PATCH)]);
        let (key, digest) = (builds.all[0].room_key().unwrap(), builds.all[0].source.digest.clone());
        progress::remember(&key, 1500, std::time::Duration::from_secs(600));
        let room = crate::sys::cache::directory(entries::ROOMS).unwrap().join(&key);
        std::fs::create_dir_all(room.join(room::OBJECTS)).unwrap();
        for object in 0..1500 {
            std::fs::write(room.join(room::OBJECTS).join(format!("{object}.o")), "").unwrap();
        }
        for (left, expected) in [(&*digest, ": about 30 s"), ("another", ": at most about 10 min")] {
            std::fs::write(room.join("state"), format!("whole\n{left}\n")).unwrap();
            let plan = builds.plan().unwrap_or_else(|error| vec![error.to_string()]);
            assert!(plan[0].ends_with(expected), "{left}: {plan:?}");
            assert!(builds.plan_one(0).is_ok_and(|line| line.ends_with(expected)), "{left}");
        }
    });
}

#[test]
fn two_levels_of_the_same_content_are_said_to_be_one_kernel() {
    fake::alone(module_path!(), "two_levels_of_the_same_content_are_said_to_be_one_kernel", |place| {
        let other = fake::PATCH.replace("+two", "+three");
        let all = [("a.patch", fake::PATCH), ("b.patch", other.as_str()), ("c.patch", fake::PATCH)];
        let notes = builds(place, &all).notes();
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains("with a.patch and ") && notes[0].contains("with c.patch have the same"));
    });
}

#[test]
fn a_hunk_that_goes_in_among_other_lines_is_noted() {
    fake::alone(module_path!(), "a_hunk_that_goes_in_among_other_lines_is_noted", |place| {
        let fuzzy = "--- a/fs/one.c\n+++ b/fs/one.c\n@@ -1,2 +1,2 @@\n-one\n+two\n zero\n";
        let builds =
            builds(place, &[("a.patch", fuzzy), ("b.patch", &fake::PATCH.replace("+two", "+three"))]);
        builds.plan().unwrap();
        let said = "a.patch: hunk #1 at line 1 of fs/one.c was applied although lines around it differ; \
                    look whether that is where it belongs";
        assert_eq!(builds.notes(), [said]);
    });
}

#[test]
fn a_second_kernel_is_planned_as_one_that_shares_objects() {
    let name = "a_second_kernel_is_planned_as_one_that_shares_objects";
    fake::alone(module_path!(), name, |place| {
        let other = fake::PATCH.replace("+two", "+three");
        let builds = builds(place, &[("a.patch", fake::PATCH), ("b.patch", &other)]);
        let took = std::time::Duration::from_secs(600);
        progress::remember(&builds.all[0].room_key().unwrap(), 1500, took);
        let plan = builds.plan();
        let plan = plan.unwrap_or_else(|error| vec![error.to_string()]);
        assert!(plan[0].ends_with("about 10 min") && plan[1].ends_with("about 30 s"), "{plan:?}");
    });
}

#[test]
fn kernels_of_patches_are_built_in_one_room_and_found_again() {
    fake::alone(module_path!(), "kernels_of_patches_are_built_in_one_room_and_found_again", |place| {
        let other = fake::PATCH.replace("+two", "+three");
        let builds = builds(place, &[("a.patch", fake::PATCH), ("b.patch", &other)]);
        let flag = AtomicBool::new(false);
        let built = builds.carry_out(&mut |_| (), &flag).unwrap();
        let text = |kernel: &BuiltKernel| std::fs::read_to_string(&kernel.image).unwrap();
        assert_eq!([text(&built[0]), text(&built[1])], ["two\n", "three\n"]);
        assert_eq!(built[0].facts, builds.identity(0), "it was known before");
        let kept = built[0].image.parent().unwrap().with_file_name("patches/patch-1-a.patch");
        assert_eq!(std::fs::read_to_string(kept).unwrap(), fake::PATCH);
        assert_eq!(std::fs::read_dir(crate::sys::cache::place(entries::ROOMS).unwrap()).unwrap().count(), 1);
        assert!(builds.plan().unwrap().iter().all(|line| line.ends_with("is in the cache")));
    });
}

#[test]
fn who_waits_for_another_build_in_the_same_room_says_so() {
    let name = "who_waits_for_another_build_in_the_same_room_says_so";
    fake::alone(module_path!(), name, |place| {
        let builds = builds(place, &[("a.patch", fake::PATCH)]);
        let key = builds.all[0].room_key().unwrap();
        let mut other = Some(entries::room(&key, &mut || unreachable!()).unwrap());
        let mut said = Vec::new();
        let mut say = |step: &Step<'_>| {
            said.push(step.what.to_owned());
            if step.what.contains(" waits for another assay") {
                other = None;
            }
        };
        assert_eq!(builds.carry_out(&mut say, &AtomicBool::new(false)).unwrap().len(), 1);
        assert_eq!(
            said.iter().filter(|what| what.contains(" waits for another assay")).count(),
            1,
            "{said:?}"
        );
    });
}

/// Commits what lies there as a revision of this name.
fn commit(root: &Path, name: &str) {
    let author = ["-c", "user.name=x", "-c", "user.email=x@y"];
    for words in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", name], &["tag", name]] {
        let mut git = std::process::Command::new("git");
        assert!(git.arg("-C").arg(root).args(author).args(words).status().unwrap().success());
    }
}

#[test]
fn revisions_that_leave_a_kernel_as_it_is_are_refused() {
    let name = "revisions_that_leave_a_kernel_as_it_is_are_refused";
    fake::alone(module_path!(), name, |place| {
        let root = place.join("source");
        // As kbuild does, which says what each object was made of.
        fake::kernel(&root, "mkdir -p $1/fs; echo 'deps := /r/tree/fs/one.c' > $1/fs/.one.o.cmd\n");
        std::fs::write(root.join("fs/two.c"), "left out\n").unwrap();
        commit(&root, "v1");
        std::fs::write(root.join("fs/two.c"), "changed\n").unwrap();
        commit(&root, "v2");
        std::fs::write(root.join("fs/one.c"), "changed\n").unwrap();
        commit(&root, "v3");
        let built = |revisions: [&str; 2]| {
            let of = |revision| {
                let source = Source::open(&root, Some(revision)).unwrap();
                Build { source, ..fake::build(&root, Vec::new()) }
            };
            let builds = Builds::of(revisions.map(of).into());
            builds.carry_out(&mut |_| (), &AtomicBool::new(false)).map(|built| built.len())
        };
        let same = built(["v1", "v2"]).unwrap_err();
        let said = "source@v1 and source@v2 are one kernel: they differ in fs/two.c, which is no part of it";
        assert_eq!(same.to_string(), said);
        assert!(same.hint().contains("--config FILE"), "{}", same.hint());
        for differing in [["v1", "v3"], ["v2", "v3"], ["v1", "v1"]] {
            assert_eq!(built(differing).unwrap(), 2, "{differing:?}");
        }
        // Of words alone that is known before anything is built.
        std::fs::create_dir(root.join("Documentation")).unwrap();
        std::fs::write(root.join("Documentation/one.rst"), "words\n").unwrap();
        commit(&root, "v4");
        std::fs::write(root.join("fs/hook.sh"), "exit 1\n").unwrap();
        commit(&root, "v5");
        let words = built(["v3", "v4"]).unwrap_err().to_string();
        assert!(
            words.starts_with("source@v3 and source@v4 are one kernel: they differ in Documentation/one.rst")
        );
        assert!(!matches!(built(["v4", "v5"]), Err(BuildError::OneKernel { .. })));
    });
}

#[test]
fn a_mistake_in_a_patch_is_told_before_the_unpatched_kernel_is_built() {
    let name = "a_mistake_in_a_patch_is_told_before_the_unpatched_kernel_is_built";
    fake::alone(module_path!(), name, |place| {
        let (root, count) = (place.join("source"), place.join("count"));
        let hook = format!("cat fs/one.c >> '{}'; ! grep -q two fs/one.c\n", count.display());
        fake::kernel(&root, &hook);
        let patch = Patch::of(Path::new("a.patch"), fake::PATCH.as_bytes().to_vec()).unwrap();
        let builds = Builds::of(vec![fake::build(&root, Vec::new()), fake::build(&root, vec![patch])]);
        assert!(builds.carry_out(&mut |_| (), &AtomicBool::new(false)).is_err());
        assert_eq!(std::fs::read_to_string(&count).unwrap(), "two\n", "the other one was not begun");
    });
}

#[test]
fn an_option_that_is_off_is_told_before_any_kernel_is_built() {
    let name = "an_option_that_is_off_is_told_before_any_kernel_is_built";
    fake::alone(module_path!(), name, |place| {
        let (root, count) = (place.join("source"), place.join("count"));
        fake::kernel(&root, &format!("cat fs/one.c >> '{}'\n", count.display()));
        let patch = |name: &str, text: &str| Patch::of(Path::new(name), text.as_bytes().to_vec()).unwrap();
        let options = "--- a/Kconfig\n+++ b/Kconfig\n@@ -1 +1,2 @@\n \n+config FOO\n";
        let all = [vec![], vec![patch("a.patch", fake::PATCH)], vec![patch("b.patch", options)]];
        let builds = Builds::of(all.map(|patches| fake::build(&root, patches)).into());
        let error = builds.carry_out(&mut |_| (), &AtomicBool::new(false)).unwrap_err();
        assert_eq!(error.to_string(), "b.patch brings the option FOO, which is off");
        assert!(!count.exists(), "nothing was compiled");
        // The two that are right are built, and stand where they were asked for.
        let mut right = builds.all;
        right.truncate(2);
        let built = Builds::of(right).carry_out(&mut |_| (), &AtomicBool::new(false)).unwrap();
        let texts = built.iter().map(|kernel| std::fs::read_to_string(&kernel.image).unwrap());
        assert_eq!(texts.collect::<Vec<_>>(), ["one\n", "two\n"]);
        assert_eq!(std::fs::read_to_string(&count).unwrap(), "two\none\n");
    });
}

#[test]
fn keys_that_the_source_lacks_are_told_before_it_is_built() {
    let name = "keys_that_the_source_lacks_are_told_before_it_is_built";
    fake::alone(module_path!(), name, |place| {
        let root = place.join("source");
        fake::kernel(&root, "exit 1\n");
        let path = place.join("mine.config");
        let of = |value: &str| {
            std::fs::write(&path, format!("CONFIG_SYSTEM_TRUSTED_KEYS={value}\n")).unwrap();
            let configuration = Configuration::read(Some(&path), &BTreeSet::new()).unwrap();
            let build = Build { kind: Kind::Whole(configuration), ..fake::build(&root, Vec::new()) };
            build.has_keys().map_err(|error| format!("{error}; {}", error.hint()))
        };
        let said = of("\"debian/certs.pem\"").unwrap_err();
        assert!(
            said.contains("names debian/certs.pem, which the source does not have; set CONFIG_"),
            "{said}"
        );
        assert_eq!(of("\"\""), Ok(()));
        assert_eq!(of("\"fs/one.c\""), Ok(()));
    });
}
