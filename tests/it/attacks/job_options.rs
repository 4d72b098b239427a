//! Options through which a job writes, deletes or executes: aimed at a victim outside, with and without `--destroy`.

use std::path::{Path, PathBuf};
use std::process::Command;

use assay::workload::{Effect, FioEngine, fio_option, fio_option_names};

use crate::sandbox::{Sandbox, errors};
use crate::tools::available;

const PRECIOUS: usize = 128 * 1024;

/// What becomes of an option that is aimed at the victim.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// It needs `--destroy VICTIM`; then fio changes the victim.
    Changes,
    /// It needs `--destroy VICTIM`; this machine's fio or device does not get so far.
    Names,
    /// No job may have it.
    Never,
}
use Fate::{Changes, Names, Never};

const PLAIN: &str = "rw=write\nsize=64k\nfilename=HERE/new\n";
const UNNAMED: &str = "rw=write\nsize=64k\n";
const READS: &str = "rw=read\nsize=64k\nfilename=HERE/victim\n";

/// (what comes first in the job, the option aimed, the victim, what becomes of it)
const ATTACKS: &[(&str, &str, &str, Fate)] = &[
    (PLAIN, "filename=HERE/victim", "victim", Changes),
    (PLAIN, "mem=mmap:HERE/victim", "victim", Changes),
    (PLAIN, "mem=mmapshared:HERE/victim", "victim", Changes),
    (PLAIN, "iomem=mmaphuge:HERE/victim", "victim", Names),
    (PLAIN, "write_iolog=HERE/victim", "victim", Changes),
    (PLAIN, "write_bw_log=HERE/vic", "vic_bw.1.log", Changes),
    (PLAIN, "write_lat_log=HERE/vic", "vic_clat.1.log", Changes),
    (PLAIN, "write_iops_log=HERE/vic", "vic_iops.1.log", Changes),
    (
        "rw=write\nsize=64k\nfilename=HERE/new\nlog_hist_msec=1\n",
        "write_hist_log=HERE/vic",
        "vic_clat_hist.1.log",
        Changes,
    ),
    ("rw=write\nsize=64k\nfilename=HERE/new\nwrite_bw_log\n", "name=HERE/vic", "vic_bw.1.log", Changes),
    ("rw=write\nsize=64k\nfilename=HERE/new\nname=HERE/vic\n", "exec_prerun=echo", "vic.prerun.txt", Changes),
    (
        "rw=write\nsize=64k\nfilename=HERE/new\nname=HERE/vic\n",
        "exec_postrun=echo",
        "vic.postrun.txt",
        Changes,
    ),
    (
        "ioengine=exec\nname=HERE/vic\nruntime=1\ntime_based\narguments=x\n",
        "program=/bin/true",
        "vic.stdout",
        Changes,
    ),
    (
        "ioengine=exec\nname=HERE/vic\nruntime=1\ntime_based\nprogram=/bin/true\n",
        "arguments=x",
        "vic.stderr",
        Changes,
    ),
    (READS, "unlink=1", "victim", Changes),
    ("rw=read\nsize=64k\nloops=2\nfilename=HERE/victim\n", "unlink_each_loop=1", "victim", Changes),
    (READS, "ioengine=filedelete", "victim", Changes),
    (UNNAMED, "filename_format=HERE/vic$filenum", "vic0", Changes),
    ("rw=write\nsize=64k\ndirectory=HERE\n", "filename_format=/sub/vic$filenum", "sub/vic0", Changes),
    (UNNAMED, "opendir=HERE/sub", "sub/victim", Changes),
    (PLAIN, "donorname=HERE/victim", "victim", Names),
    (PLAIN, "replay_redirect=HERE/victim", "victim", Names),
    (PLAIN, "merge_blktrace_file=HERE/victim", "victim", Names),
    ("rw=write\nsize=64k\nioengine=libblkio\nuri=x\n", "libblkio_path=HERE/victim", "victim", Never),
    ("rw=write\nsize=64k\nioengine=pmemblk\n", "filename=HERE/victim,512,1", "victim", Names),
    (PLAIN, "read_iolog=HERE/victim", "victim", Never),
    (PLAIN, "profile=act", "victim", Never),
    (PLAIN, "ioscheduler=none", "victim", Never),
    (PLAIN, "cgroup=assay-victim", "victim", Never),
    (PLAIN, "cgroup_weight=100", "victim", Never),
    (PLAIN, "cgroup_nodelete=1", "victim", Never),
    (PLAIN, "libblkio_pre_connect_props=path=HERE/victim", "victim", Never),
    (PLAIN, "libblkio_pre_start_props=path=HERE/victim", "victim", Never),
    ("ioengine=rbd\nrw=write\nsize=64k\n", "rbdname=image", "victim", Never),
    ("ioengine=rados\nrw=write\nsize=64k\n", "pool=p", "victim", Never),
    ("ioengine=gfapi\nrw=write\nsize=64k\n", "volume=v", "victim", Never),
    ("ioengine=nbd\nrw=write\nsize=64k\n", "uri=nbd+unix:///?socket=HERE/victim", "victim", Never),
    ("ioengine=http\nrw=write\nsize=64k\n", "http_host=localhost", "victim", Never),
    ("ioengine=nfs\nrw=write\nsize=64k\n", "nfs_url=nfs://localhost/x", "victim", Never),
    ("ioengine=dfs\nrw=write\nsize=64k\n", "cont=c", "victim", Never),
    ("ioengine=libhdfs\nrw=write\nsize=64k\n", "namenode=localhost", "victim", Never),
    ("ioengine=librpma_apm_client\nrw=write\nsize=64k\n", "serverip=127.0.0.1", "victim", Never),
    ("rw=write\nsize=64k\nfilename=0000\\:99\\:00.0\n", "ioengine=xnvme", "victim", Never),
];

/// A directory with the victim in it, and the checksum of all that is in it.
struct Scene {
    sandbox: Sandbox,
    victim: PathBuf,
}

impl Scene {
    fn new(victim: &str) -> Scene {
        let sandbox = Sandbox::new();
        std::fs::create_dir(sandbox.path().join("sub")).unwrap();
        let victim = sandbox.path().join(victim);
        let bytes: Vec<u8> = (0..PRECIOUS).map(|at| (at % 251) as u8 | 1).collect();
        std::fs::write(&victim, bytes).unwrap();
        Scene { sandbox, victim }
    }

    fn here(&self, text: &str) -> String {
        text.replace("HERE", &self.sandbox.path().to_string_lossy())
    }

    fn checksum(&self) -> Option<u32> {
        std::fs::read(&self.victim).ok().map(|bytes| crc32c::crc32c(&bytes))
    }

    /// Runs `job` with these further arguments: exit code, standard output, standard error.
    fn run(&self, job: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
        self.sandbox.write("job.fio", &self.here(job));
        let arguments: Vec<String> = arguments.iter().map(|argument| self.here(argument)).collect();
        let mut all = vec!["run", "job.fio", "--vary", "bs=4k,8k", "--rounds", "1", "-q"];
        all.extend(arguments.iter().map(String::as_str));
        let output = self.sandbox.run(&all);
        let said = errors(&output);
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), said)
    }

    /// It must be refused, with nothing touched.
    fn is_refused(&self, job: &str, arguments: &[&str]) -> String {
        let before = (self.checksum(), self.sandbox.names());
        let (code, _, said) = self.run(job, arguments);
        assert_eq!(code, Some(2), "{job}{arguments:?}: {said}");
        assert!(said.contains("hint: "), "{job}{arguments:?}: {said}");
        let mut names = self.sandbox.names();
        names.remove("job.fio");
        names.extend(before.1.contains("job.fio").then(|| "job.fio".to_owned()));
        assert_eq!((self.checksum(), names), before, "{job}{arguments:?}: {said}");
        said
    }
}

/// The option as `--vary` has it, in all jobs.
fn varied(option: &str) -> String {
    format!("job.{}", option.replace(',', "\\,"))
}

#[test]
fn options_aimed_at_a_victim_are_refused_in_jobs_and_levels() {
    if !available("fio") {
        return;
    }
    for (first, option, victim, fate) in ATTACKS {
        let scene = Scene::new(victim);
        for engine in ["fio", "native"] {
            let said = scene.is_refused(&format!("[a]\n{first}{option}\n"), &["--engine", engine]);
            assert!(engine == "native" || *fate == Never || said.contains("--destroy"), "{option}: {said}");
            scene.is_refused(&format!("[global]\n{option}\n[a]\n{first}"), &["--engine", engine]);
            scene.is_refused(&format!("[a]\n{first}"), &["--engine", engine, "--vary", &varied(option)]);
        }
    }
}

#[test]
fn named_with_destroy_they_are_planned_aloud_and_then_done() {
    if !available("fio") {
        return;
    }
    for (first, option, victim, fate) in ATTACKS {
        let scene = Scene::new(victim);
        let before = scene.checksum();
        let path = scene.victim.to_string_lossy().into_owned();
        let job = format!("[a]\n{first}{option}\n");
        let named = ["--engine", "fio", "--destroy", &path];
        if *fate == Never {
            scene.is_refused(&job, &named);
            continue;
        }
        let (code, plan, said) = scene.run(&job, &[&named[..], &["--plan"]].concat());
        assert_eq!((code, scene.checksum()), (Some(0), before), "{option}: {said}");
        let begins = |line: &str| line.trim().strip_suffix('…').is_some_and(|start| path.starts_with(start));
        assert!(plan.contains(&path) || plan.lines().any(begins), "{option}: {plan}");
        if *fate == Changes {
            // With --resume, hooks and the like nothing else comes into it: the trial of one arm.
            let (_, _, said) = scene.run(&job, &[&named[..], &["--time-budget", "1ms"]].concat());
            assert_ne!(scene.checksum(), before, "{option} is no attack: {said}");
        }
    }
}

#[test]
fn every_option_that_reaches_outside_has_its_attack() {
    let aimed = |name: &str| {
        ATTACKS.iter().any(|(first, option, ..)| {
            format!("{first}{option}\n").lines().any(|line| {
                let key = line.split('=').next().unwrap_or_default();
                fio_option(key).is_some_and(|known| known.name == name)
            })
        })
    };
    let harmless = [Effect::Nothing, Effect::Reads, Effect::Leaves];
    let missing: Vec<&str> = fio_option_names()
        .filter_map(fio_option)
        .filter(|option| !harmless.contains(&option.effect))
        .map(|option| option.name)
        .filter(|name| !aimed(name))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// `name : what it is` of fio's help.
fn helped(arguments: &[&str]) -> Vec<String> {
    let output = Command::new("fio").args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let name = |line: &str| {
        let name = line.split_once(':')?.0.trim().to_owned();
        let fits = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        (!name.is_empty() && name.chars().all(fits)).then_some(name)
    };
    text.lines().filter_map(name).collect()
}

#[test]
fn every_option_and_engine_of_the_installed_fio_is_classified() {
    if !available("fio") {
        return;
    }
    let output = Command::new("fio").arg("--enghelp").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let engines: Vec<&str> = text.lines().skip(1).map(str::trim).filter(|name| !name.is_empty()).collect();
    assert!(engines.len() > 15, "{text}");
    let unknown: Vec<&&str> =
        engines.iter().filter(|name| FioEngine::of(name) == FioEngine::Unknown).collect();
    assert_eq!(unknown, Vec::<&&str>::new(), "engines that src/workload/fio_engines.rs does not know");
    let mut options = helped(&["--cmdhelp=all"]);
    assert!(options.len() > 200, "{options:?}");
    for engine in engines {
        options.extend(helped(&[&format!("--enghelp={engine}")]));
    }
    options.retain(|name| fio_option(name).is_none());
    assert_eq!(options, Vec::<String>::new(), "options that src/workload/fio_options does not classify");
}

#[test]
fn commands_are_said_by_the_plan_and_run_only_by_the_run() {
    if !available("fio") {
        return;
    }
    let touch = "touch HERE/ran";
    let scene = Scene::new("victim");
    let ran = scene.sandbox.path().join("ran");
    for (job, arguments) in [
        (format!("[a]\n{PLAIN}exec_prerun={touch}\n"), vec![]),
        (format!("[global]\nexec_postrun={touch}\n[a]\n{PLAIN}"), vec![]),
        (format!("[a]\n{PLAIN}"), vec!["--vary", "exec_prerun=true,touch HERE/ran"]),
        (format!("[a]\n{PLAIN}exec_prerun=${{COMMAND}}\n"), vec!["--vary", "COMMAND=true,touch HERE/ran"]),
    ] {
        let _ = std::fs::remove_file(&ran);
        let _ = std::fs::remove_file(scene.sandbox.path().join("new"));
        scene.is_refused(&job, &[&["--engine", "native"], &arguments[..]].concat());
        let arguments = [&["--engine", "fio"], &arguments[..]].concat();
        let (code, plan, said) = scene.run(&job, &[&arguments[..], &["--plan"]].concat());
        let runs = plan.split("\nruns\n").nth(1).unwrap_or_default();
        assert!(code == Some(0) && runs.contains(&scene.here(touch)), "{job}: {plan}{said}");
        assert!(!ran.exists(), "{job}: a plan runs nothing");
        let (code, _, said) = scene.run(&job, &arguments);
        assert!(code == Some(0) && ran.exists(), "{job}: {said}");
    }
    for (job, said_so) in [
        ("[a]\nioengine=exec\nprogram=/bin/true\narguments=--x\n", "/bin/true --x  (ioengine=exec of [a])"),
        ("[a]\nioengine=external:HERE/e.so\n", "code of HERE/e.so  (ioengine=external:HERE/e.so of [a])"),
        (
            "[a]\nioengine=HERE/e.so\n",
            "code of an engine that assay does not know  (ioengine=HERE/e.so of [a])",
        ),
    ] {
        let (code, plan, said) = scene.run(job, &["--engine", "fio", "--plan"]);
        assert!(code == Some(0) && plan.contains(&scene.here(said_so)), "{job}: {plan}{said}");
    }
}

#[test]
fn a_job_cannot_be_smuggled_past_the_reading_of_its_text() {
    if !available("fio") {
        return;
    }
    let fio = ["--engine", "fio"];
    let scene = Scene::new("victim");
    scene.sandbox.write("inside.fio", &scene.here("write_iolog=HERE/victim\n"));
    scene.is_refused(&format!("[a]\n{PLAIN}include inside.fio\n"), &fio);
    // A value that fio would replace once more.
    let nested = ["--engine", "fio", "--vary", "V=HERE/x,${PWD}/victim"];
    assert!(scene.is_refused("[a]\nrw=write\nsize=64k\nfilename=${V}\n", &nested).contains("another ${PWD}"));
    // A name that becomes another line.
    for level in ["include inside.fio", "[HERE/victim]"] {
        let vary = format!("V=thread,{level}");
        scene.is_refused(&format!("[a]\n{PLAIN}${{V}}\n"), &["--engine", "fio", "--vary", &vary]);
    }
    // A line that is longer than fio reads: the rest of it is an option.
    let option = scene.here("filename=HERE/victim");
    let long = format!("[a]\nrw=write\nsize=64k\ndescription={}{option}\n", "x".repeat(8191 - 12));
    assert!(scene.is_refused(&long, &fio).contains("longer than"));
    // A number in place of a word.
    let cpus = Command::new("getconf").arg("_NPROCESSORS_CONF").output().unwrap().stdout;
    let scene = Scene::new(&format!("v{}", String::from_utf8(cpus).unwrap().trim()));
    scene.is_refused("[a]\nrw=write\nsize=64k\ndirectory=HERE\nfilename=v$ncpus\n", &fio);
    // A name that is a device's, or a link.
    std::os::unix::fs::symlink(&scene.victim, scene.sandbox.path().join("link")).unwrap();
    scene.is_refused("[HERE/link]\nrw=write\nsize=64k\n", &fio);
    assert!(scene.sandbox.path().join("link").is_symlink());
    // An option of a fio to come.
    assert!(scene.is_refused(&format!("[a]\n{PLAIN}future_option=1\n"), &fio).contains("does not know"));
}

#[test]
fn a_file_that_is_read_and_deleted_needs_destroy() {
    let job = format!("[a]\n{READS}unlink=1\n");
    let scene = Scene::new("victim");
    let before = scene.checksum();
    for engine in ["native", "fio"] {
        if engine == "native" || available("fio") {
            assert!(scene.is_refused(&job, &["--engine", engine]).contains("--destroy"));
        }
    }
    scene.is_refused(&format!("[a]\n{READS}"), &["--vary", "unlink=0,1"]);
    let (code, _, said) = scene.run(&format!("[a]\n{READS}"), &[]);
    assert_eq!((code, scene.checksum()), (Some(0), before), "reading alone is fine: {said}");
    let named = ["--destroy", "HERE/victim"];
    let (_, plan, _) = scene.run(&job, &[&named[..], &["--plan"]].concat());
    let fate = plan.split("\ndeleted (named with --destroy)\n").nth(1).unwrap_or_default();
    assert!(fate.starts_with(&scene.here("  HERE/victim")), "{plan}");
    let (code, _, said) = scene.run(&job, &named);
    assert_eq!((code, scene.checksum()), (Some(0), None), "{said}");
}

fn link(scene: &Scene, name: &str, to: &Path) -> PathBuf {
    let path = scene.sandbox.path().join(name);
    std::os::unix::fs::symlink(to, &path).unwrap();
    path
}

#[test]
fn a_dangling_link_is_in_the_way_and_nothing_is_made_through_it() {
    for engine in ["native", "fio"] {
        if engine == "fio" && !available("fio") {
            continue;
        }
        let scene = Scene::new("victim");
        let missing = scene.sandbox.path().join("sub/not-there");
        let path = link(&scene, "link", &missing);
        link(&scene, "second", &path);
        link(&scene, "a.0.0", Path::new("sub/not-there"));
        for job in [
            "[a]\nrw=write\nsize=64k\nfilename=HERE/link\n",
            "[a]\nrw=read\nsize=64k\nfilename=HERE/link\n",
            "[a]\nrw=write\nsize=64k\nfilename=HERE/second\n",
            "[a]\nrw=write\nsize=64k\nunlink=1\nfilename=HERE/link\n",
            "[a]\nrw=write\nsize=64k\ndirectory=HERE\n",
            "[a]\nrw=write\nsize=64k\nfilename=HERE/new\nwrite_iolog=HERE/link\n",
        ] {
            let said = scene.is_refused(job, &["--engine", engine]);
            assert!(said.contains("is a symlink to") && said.contains("not-there"), "{said}");
            // Naming the link does not name what would come to be at its end.
            scene
                .is_refused(job, &["--engine", engine, "--destroy", "HERE/link", "--destroy", "HERE/second"]);
            assert!(!missing.exists() && path.is_symlink(), "{job}");
        }
    }
}

#[test]
fn what_a_link_leads_to_is_overwritten_only_when_named() {
    let scene = Scene::new("victim");
    let before = scene.checksum();
    link(&scene, "link", Path::new("victim"));
    scene.sandbox.write("log", "fio version 2 iolog\n");
    link(&scene, "iolog", Path::new("log"));
    let write = "[a]\nrw=write\nsize=64k\nfilename=HERE/link\n";
    assert!(scene.is_refused(write, &[]).contains("--destroy"));
    scene.is_refused("[a]\nrw=write\nsize=64k\nfilename=HERE/new\nwrite_iolog=HERE/iolog\n", &[]);
    assert_eq!(std::fs::read_to_string(scene.sandbox.path().join("log")).unwrap(), "fio version 2 iolog\n");
    let (code, _, said) = scene.run("[a]\nrw=read\nsize=64k\nfilename=HERE/link\n", &[]);
    assert_eq!((code, scene.checksum()), (Some(0), before), "{said}");
    let (code, _, said) = scene.run(write, &["--destroy", "HERE/victim"]);
    assert!(code == Some(0) && scene.checksum() != before, "{said}");
}
