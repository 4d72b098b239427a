//! Tests of instances. Groups, names and sizes were seen in fio 3.33.

use super::*;
use crate::workload::JobFile;

fn instances(text: &str) -> Vec<Instance> {
    let file = JobFile::parse(text, "t.fio", Path::new(".")).unwrap();
    Workload::resolve(&file).unwrap().instances(Path::new("/d"))
}

fn names(instance: &Instance) -> Vec<&str> {
    instance.files.iter().filter_map(|file| file.path.to_str()).collect()
}

#[test]
fn groups_and_reports_are_fios() {
    // fio prints a report each for a (group 0), b b c (1), d e (2).
    let text = "[global]\nrw=write\nsize=4k\nstonewall\n[a]\n[b]\nnumjobs=2\ngroup_reporting\n\
                [c]\ngroup_reporting\nstonewall=0\n[d]\nstonewall=0\nnew_group\n[e]\nstonewall=0\ngroup_reporting\n";
    let all = instances(text);
    let column = |pick: fn(&Instance) -> u32| all.iter().map(pick).collect::<Vec<u32>>();
    assert_eq!(column(|i| i.group), [0, 1, 1, 1, 2, 2]);
    assert_eq!(column(|i| i.report), [0, 1, 1, 1, 2, 2]);
    assert_eq!(column(|i| i.wave), [0, 1, 1, 1, 1, 1]);
    assert_eq!(column(|i| i.number), [0, 1, 2, 3, 4, 5]);
    assert_eq!(column(|i| i.clone), [0, 0, 1, 0, 0, 0]);
}

#[test]
fn generated_names_and_increments() {
    let all = instances("[a]\nrw=write\nsize=16k\nbs=4k\nnumjobs=3\noffset_increment=64k\nnrfiles=2\n");
    assert_eq!(names(&all[2]), ["/d/a.2.0", "/d/a.2.1"]);
    let sizes: Vec<Option<u64>> = all.iter().map(|i| i.files[1].file_size()).collect();
    assert_eq!(sizes, [Some(8192), Some(73_728), Some(139_264)]);
    assert_eq!((all[1].size, all[1].io_size), (Some(16_384), Some(16_384)));
}

#[test]
fn what_is_left_over_goes_to_the_first_files_in_blocks() {
    let lengths =
        |text: &str| -> Vec<u64> { instances(text)[0].files.iter().filter_map(|file| file.length).collect() };
    assert_eq!(lengths("[a]\nsize=50k\nbs=4k\nnrfiles=3\n"), [17_066; 3]);
    assert_eq!(lengths("[a]\nsize=50k\nbs=1\nnrfiles=3\n"), [17_067, 17_067, 17_066]);
}

#[test]
fn filesize_decides_and_size_limits() {
    let all = instances("[a]\nfilesize=64k\noffset=16k\nsize=100k\nnrfiles=3\n");
    assert_eq!(all[0].files[0].file_size(), Some(65_536));
    assert_eq!((all[0].files[0].length, all[0].size), (Some(49_152), Some(102_400)));
    assert_eq!(instances("[a]\nfilesize=64k\nsize=100k\n")[0].size, Some(65_536));
    for file in &instances("[a]\nfilesize=64k-128k\nnrfiles=50\n")[0].files {
        let size = file.file_size().unwrap();
        assert!((65_536..=131_072).contains(&size) && size % 4096 == 0, "{size}");
    }
}

#[test]
fn named_files_and_directories() {
    let all = instances("[a]\nsize=8k\nfilename=x:y\\:z\nnrfiles=5\n");
    assert_eq!(names(&all[0]), ["/d/x", "/d/y:z"]);
    let all = instances(
        "[a]\nsize=8k\ndirectory=/p:q\nnumjobs=3\n[b]\nsize=8k\ndirectory=/p:q\nfilename=/f\nnumjobs=2\n",
    );
    let first: Vec<&str> = all.iter().map(|i| names(i)[0]).collect();
    assert_eq!(first, ["/p/a.0.0", "/d/q/a.1.0", "/p/a.2.0", "/p/f", "/p/f"]);
    let unknown = &instances("[a]\nfilename=/dev/sdz\n")[0];
    assert_eq!((names(unknown)[0], unknown.size, unknown.files[0].length), ("/dev/sdz", None, None));
}
