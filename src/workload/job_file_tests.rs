//! Tests of reading and writing job files.

use super::*;

fn parse(text: &str) -> Result<JobFile, WorkloadErrors> {
    JobFile::parse(text, "t.fio", Path::new("."))
}

fn message(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn sections_settings_and_places_are_kept_in_order() {
    let file = parse("; c\n[global]\nbs = 4k ; inline\n\n[a]\n\tstonewall\r\n[a]\nfilename=x y#z\n").unwrap();
    let names: Vec<&str> = file.sections.iter().map(|section| section.name.as_str()).collect();
    assert_eq!(names, ["global", "a", "a"]);
    let settings: Vec<(&str, Option<&str>, u32)> =
        file.settings().map(|s| (s.name.as_str(), s.value.as_deref(), s.place.line)).collect();
    assert_eq!(settings, [("bs", Some("4k"), 3), ("stonewall", None, 6), ("filename", Some("x y"), 8)]);
}

#[test]
fn what_is_no_job_file_is_refused_with_its_line() {
    assert!(message("").starts_with("t.fio: no job in it"));
    assert!(message("[global]\nbs=4k\n").contains("only [global]"));
    assert!(message("bs=4k\n[a]\n").starts_with("t.fio:1: option 'bs=4k' before"));
    assert!(message("[a\nbs=4k\n").starts_with("t.fio:1: '[a' is not a section"));
    assert!(message("[]\n").contains("1 to 254"));
    assert!(message("[a]\n=4k\nb s=1\n").lines().count() == 2);
    assert!(message("[a]\ninclude not-there.fio\n").contains("cannot include ./not-there.fio"));
    assert!(message("[a]\nb\0s=4k\n").contains("not a text file"));
}

#[test]
fn includes_are_read_in_place_and_cycles_noticed() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("sub")).unwrap();
    std::fs::write(directory.path().join("sub/one.inc"), "bs=8k\ninclude two.inc\n").unwrap();
    std::fs::write(directory.path().join("sub/two.inc"), "rw=read\n").unwrap();
    std::fs::write(directory.path().join("loop.inc"), "include loop.inc\n").unwrap();
    std::fs::write(directory.path().join("section.inc"), "[b]\n").unwrap();
    let read = |text: &str| JobFile::parse(text, "t.fio", directory.path());

    let file = read("[a]\nsize=1m\ninclude sub/one.inc\ndirect=1\n").unwrap();
    assert_eq!(file.to_fio_text(), "[a]\nsize=1m\nbs=8k\nrw=read\ndirect=1\n");
    assert!(file.sections[0].settings[2].place.origin.ends_with("sub/two.inc"));
    assert!(read("[a]\ninclude loop.inc\n").unwrap_err().to_string().contains("includes itself"));
    assert!(read("[a]\ninclude section.inc\n").unwrap_err().to_string().contains("only options"));
    assert!(
        read("[a]\ninclude sub\n").unwrap_err().to_string().contains("is a directory, not a regular file")
    );
}

#[test]
fn an_override_reaches_every_job() {
    let mut file = parse("[global]\nbsrange=4k-8k\n[a]\nblocksize=1k\nbsrange=1k-2k\n[b]\n").unwrap();
    file.set_everywhere("bs", "64k").unwrap();
    file.set_everywhere("stonewall", "").unwrap();
    assert_eq!(
        file.to_fio_text(),
        "[global]\nbsrange=4k-8k\n\n[a]\nbsrange=64k-64k\nstonewall\n\n[b]\nbsrange=64k-64k\nstonewall\n"
    );
    // A [global] bsrange wins over a job's bs in fio, so the override is a range; without one it stays as given.
    let mut plain = parse("[a]\nblocksize=1k\n").unwrap();
    plain.set_everywhere("bs", "4k,8k").unwrap();
    assert_eq!(plain.to_fio_text(), "[a]\nbs=4k,8k\n");
    assert!(plain.sets("blocksize") && !plain.sets("rw"));
}

#[test]
fn a_colon_in_a_directory_divides_nothing() {
    let mut file = parse("[a]\ndirectory=files:/mnt/a\\:b\n").unwrap();
    file.make_directories_absolute(Path::new("/data/21:03"));
    assert_eq!(file.to_fio_text(), "[a]\ndirectory=/data/21\\:03/files:/mnt/a\\:b\n");
}

#[test]
fn an_override_that_cannot_hold_is_refused() {
    let mut file = parse("[a]\nbssplit=4k/50:8k/50\n").unwrap();
    assert!(file.set_everywhere("bs", "4k").unwrap_err().to_string().contains("bssplit"));
    assert!(file.set_everywhere("iodpeth", "4").unwrap_err().to_string().contains("did you mean iodepth?"));
    assert!(file.set_everywhere("filename", "a;b").unwrap_err().to_string().contains("';'"));
}

#[test]
fn variables_are_found_and_replaced() {
    let file = parse("[a]\nbs=${BS}\n${FLAG}\n").unwrap();
    assert_eq!(file.variables().into_iter().collect::<Vec<_>>(), ["BS", "FLAG"]);
    let values = [("BS".to_owned(), "4k".to_owned()), ("FLAG".to_owned(), "thread".to_owned())];
    assert_eq!(file.substitute(&values).unwrap().to_fio_text(), "[a]\nbs=4k\nthread\n");
    let error = file.substitute(&values[..1]).unwrap_err();
    assert!(error.to_string().contains("t.fio:3: ${FLAG}"), "{error}");
    assert!(error.hint().to_string().contains("--vary"));
}

#[test]
fn bytes_that_are_set_win_over_a_share_of_a_global() {
    let text = "[global]\nsize=50%\noffset=25%\nbs=4k\n[a]\nrw=read\n[b]\nrw=read\n";
    let mut file = JobFile::parse(text, "t", Path::new(".")).unwrap();
    file.set_everywhere("size", "1g").unwrap();
    let shares = |file: &JobFile| {
        let globals = file.sections.iter().filter(|section| section.is_global());
        let settings = globals.flat_map(|global| &global.settings);
        settings.map(|setting| setting.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(shares(&file), ["offset", "bs"]);
    let refused = file.set_in("a", "offset", "1m").unwrap_err().to_string();
    assert!(refused.contains("fio keeps the percentage of the [global]"), "{refused}");
    file.set_everywhere("bs", "8k").unwrap();
    assert_eq!(shares(&file), ["offset", "bs"], "of others the job's own line wins");
}

#[test]
fn files_elsewhere_are_found_behind_parents_and_beside_jobs_without_files() {
    let at = |text: &str| {
        let job = JobFile::parse(text, "j.fio", Path::new("/")).unwrap();
        job.elsewhere_than(Path::new("/work/target"))
    };
    let data = Some(PathBuf::from("/data"));
    assert_eq!(at("[a]\ndirectory=/data\n"), data);
    assert_eq!(at("[a]\ndirectory=../../data\n"), data);
    assert_eq!(at("[a]\nopendir=/data\n"), data);
    assert_eq!(at("[cpu]\nioengine=cpuio\n[a]\ndirectory=/data\n"), data);
    assert_eq!(at("[global]\nioengine=cpuio\n[cpu]\n[a]\nioengine=psync\ndirectory=/data\n"), data);
    for within in [
        "[a]\ndirectory=../target/sub\n",
        "[a]\n",
        "[cpu]\nioengine=cpuio\n",
        "[a]\ndirectory=/work/target\n",
        "[a]\nopendir=/data\nfilename=f\n",
    ] {
        assert_eq!(at(within), None, "{within}");
    }
    let job = JobFile::parse("[a]\nfilename=f\n", "j.fio", Path::new("/")).unwrap();
    assert_eq!(job.elsewhere_than(Path::new("/work/x/../target")), None, "a place may be written so, too");
}
