//! What jobs of fio may write to, delete and execute.

use super::*;

fn of(text: &str) -> FioEffects {
    let file = JobFile::parse(text, "job", Path::new("/")).unwrap();
    FioEffects::of(&file, Path::new("/own"))
}

fn strings(paths: &[PathBuf]) -> Vec<&str> {
    paths.iter().filter_map(|path| path.to_str()).collect()
}

#[test]
fn names_are_read_as_fio_reads_them() {
    let found = of("[global]\nfilename=/dev/disk/by-path/pci-0\\:0:rel\n[a]\n");
    assert_eq!(strings(&found.files), ["/dev/disk/by-path/pci-0:0", "/own/rel"]);
    assert!(found.beginnings.is_empty());
    let found = of("[a]\ndirectory=/data\nfilename=/x\n");
    assert_eq!(strings(&found.files), ["/x", "/data/x"]);
    let found = of("[global]\nfilename=/x\n[a]\nfilename=/y\nfilename=/z\n");
    assert_eq!(strings(&found.files), ["/x", "/y", "/z"]);
    assert_eq!(strings(&of("[a]\nioengine=pmemblk\nfilename=/p,512,64\n").files), ["/p,512,64", "/p"]);
}

#[test]
fn generated_names_logs_and_directories_are_seen() {
    let at = |directory: &str, start: &str| (PathBuf::from(directory), start.to_owned());
    let found = of("[a]\ndirectory=/d1:/d2\nwrite_bw_log=/logs/run\n[b]\nopendir=/tree\n");
    assert_eq!(found.beginnings, [at("/d1", "a."), at("/d2", "a."), at("/logs", "run")]);
    assert_eq!(strings(&found.trees), ["/tree"]);
    assert_eq!(of("[a]\nfilename_format=sub/f_$jobnum\n").beginnings, [at("/own/sub", "f_")]);
    assert_eq!(of("[a]\nfilename_format=$filenum.$jobname\n").beginnings, [at("/own", "")]);
    let found = of("[a]\ndirectory=/d\nfilename_format=/s/x$filenum\n");
    assert_eq!(found.beginnings, [at("/s", "x"), at("/d/s", "x")]);
    let found = of("[a]\nfilename=f\nname=/n/x\nwrite_lat_log\nexec_prerun=true\n");
    assert_eq!(found.beginnings, [at("/n", "x"), at("/n", "x.prerun.txt")]);
    assert_eq!(strings(&of("[/dev/sdz]\nrw=write\n").devices), ["/dev/sdz"]);
}

#[test]
fn files_behind_other_options_are_seen() {
    for (option, file) in [
        ("mem=mmap:/f", "/f"),
        ("iomem=mmapshared:/f", "/f"),
        ("mem=mmaphuge:/h/f", "/h/f"),
        ("write_iolog=/f", "/f"),
        ("replay_redirect=/f", "/f"),
        ("merge_blktrace_file=/f", "/f"),
        ("libblkio_path=/f", "/f"),
        ("donorname=/f", "/f"),
    ] {
        assert_eq!(strings(&of(&format!("[a]\nfilename=x\n{option}\n")).files), ["/own/x", file], "{option}");
    }
    assert_eq!(strings(&of("[a]\nfilename=x\nmem=malloc\n").files), ["/own/x"]);
}

#[test]
fn what_is_executed_or_loaded_is_listed() {
    let found =
        of("[a]\nexec_prerun=one\nexec_postrun=two\n[b]\nioengine=exec\nprogram=three\narguments=-x\n\
                    [c]\nioengine=external:/e.so\n[d]\nioengine=../d\n");
    assert_eq!(
        found.commands,
        [
            "one > a.prerun.txt 2>&1  (exec_prerun of [a])",
            "two > a.postrun.txt 2>&1  (exec_postrun of [a])",
            "three -x  (ioengine=exec of [b])",
            "code of /e.so  (ioengine=external:/e.so of [c])",
            "code of an engine that assay does not know  (ioengine=../d of [d])",
        ]
    );
}

#[test]
fn storage_elsewhere_is_named_when_it_is_written_to() {
    assert!(of("[a]\nioengine=nbd\nuri=nbd://h/x\nrw=randread:8\n").elsewhere.is_empty());
    let found = of("[a]\nioengine=nbd\nuri=nbd://h/x\nrw=randrw\n").elsewhere;
    assert_eq!(found, [Elsewhere { engine: "nbd".to_owned(), names: vec!["nbd://h/x".to_owned()] }]);
    let found = of("[a]\nioengine=xnvme\nfilename=0000\\:01\\:00.0\nrw=write\n").elsewhere;
    assert_eq!(found[0].names, ["0000:01:00.0"]);
}

#[test]
fn what_cannot_be_told_or_put_back_is_refused() {
    for (line, word) in [
        ("read_iolog=trace", "cannot know in advance"),
        ("profile=act", "cannot know in advance"),
        ("libblkio_pre_connect_props=path=/dev/sda", "cannot know in advance"),
        ("ioscheduler=none", "does not put it back"),
        ("cgroup=../x", "control group"),
        ("future_option=1", "does not know fio's option future_option"),
        ("filename=x$ncpus", "another name"),
        ("name=x$pagesize", "another name"),
    ] {
        let found = of(&format!("[a]\n{line}\n")).refused;
        assert!(found.len() == 1 && found[0].what.contains(word), "{line}: {found:?}");
    }
    assert_eq!(of(&format!("[a]\ndescription={}\n", "x".repeat(4000))).refused.len(), 1);
    assert!(of("[a]\nsize=$mb_memory\ncgroup_nodelete=0\nverify_state_save=1\nuid=5\n").refused.is_empty());
}
