//! Where the store is, and runs by number or by file.

use std::path::{Path, PathBuf};

use clap::Args;

use super::other_user::{assay_of, name, owned_by_another};
use super::{Failure, named_run};
use crate::record::Run;
use crate::store::{Store, StoreError};

/// `--db`.
#[derive(Args, Clone, Debug)]
pub struct Database {
    /// The store
    #[arg(
        long,
        env = "ASSAY_DB",
        default_value = "assay.db",
        value_name = "FILE",
        global = false,
        hide_env_values = true
    )]
    pub db: PathBuf,
}

impl Database {
    /// Opens the store, made when it does not exist.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2.
    pub fn open(&self) -> Result<Store, Failure> {
        Store::open(&self.db).map_err(|error| wrong(&error))
    }

    /// Whether [`Database::open`] has what it needs: asked before kernels are built, which takes minutes.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2.
    pub fn can_be_opened(&self) -> Result<(), Failure> {
        Store::can_be_opened(&self.db).map_err(|error| wrong(&error))
    }

    /// Opens the store, which must exist, to read; nothing of it is changed.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2.
    pub fn read(&self) -> Result<Store, Failure> {
        Store::read(&self.db).map_err(|error| wrong(&error))
    }

    /// Opens the store, which must exist, to write.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2.
    pub fn open_existing(&self) -> Result<Store, Failure> {
        Store::open_existing(&self.db).map_err(|error| wrong(&error))
    }

    /// The run of that number or name, the latest, or the one in that exported file.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2: no such run, not an export.
    pub fn load(&self, name: &str) -> Result<Run, Failure> {
        self.load_by(name, Store::load_run)
    }

    /// The same with only as many histograms and series as a report draws.
    ///
    /// # Errors
    /// As [`Database::load`].
    pub fn load_for_report(&self, name: &str) -> Result<Run, Failure> {
        self.load_by(name, Store::load_for_report)
    }

    /// The same with the files that came with trials.
    ///
    /// # Errors
    /// As [`Database::load`].
    pub fn load_with_files(&self, name: &str) -> Result<Run, Failure> {
        self.load_by(name, Store::load_with_files)
    }

    /// How many files came with the trials of a run of this name, and their bytes.
    ///
    /// # Errors
    /// As [`Database::load`].
    pub fn kept_files(&self, name: &str) -> Result<(u64, u64), Failure> {
        if !self.is_stored(name) {
            let run = self.load(name)?;
            let files = run.trials.iter().flat_map(|trial| &trial.files);
            return Ok(files.fold((0, 0), |(n, bytes), file| (n + 1, bytes + file.bytes.len() as u64)));
        }
        let store = self.read()?;
        store.kept_files(named_run::number(&store, name)?).map_err(|error| wrong(&error))
    }

    /// Whether this is the number or name of a stored run, and no file.
    pub(super) fn is_stored(&self, name: &str) -> bool {
        let is_one = name.parse::<i64>().is_ok() || name == named_run::LATEST;
        !Path::new(name).exists() && (is_one || self.may_be_a_name(name))
    }

    fn load_by(
        &self,
        name: &str,
        load: impl Fn(&Store, i64) -> Result<Run, StoreError>,
    ) -> Result<Run, Failure> {
        if self.is_stored(name) {
            let store = self.read()?;
            return load(&store, named_run::number(&store, name)?).map_err(|error| wrong(&error));
        }
        crate::import::load_export(Path::new(name)).map_err(|error| {
            Failure::request(error).hint(
                "give the number or name of a stored run (`assay list`), latest, or a file of `assay export`",
            )
        })
    }

    /// No file's name: a word, or what a run of the store is called.
    fn may_be_a_name(&self, name: &str) -> bool {
        let word = !name.contains(['/', '.']);
        (word && self.db.exists()) || self.has_run(name)
    }

    /// Whether the store is there and has a run of that name.
    pub(super) fn has_run(&self, name: &str) -> bool {
        self.db.exists() && self.read().is_ok_and(|store| named_run::is_name(&store, name))
    }

    /// The number of the run that a word means.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2: no such run, or several.
    pub(super) fn number(&self, store: &Store, name: &str) -> Result<i64, Failure> {
        named_run::number(store, name)
    }
}

/// What helps where a store cannot be used.
const OTHER_STORE: &str = "--db names a store that you may use, or a file that you may make";

/// Who may write a store, where it is another user's.
fn may_not_write(path: &Path) -> String {
    match owned_by_another(path) {
        Some((what, user)) => {
            format!("{what} belongs to {}: `{} …` may write it; {OTHER_STORE}", name(user), assay_of(user))
        }
        None => OTHER_STORE.to_owned(),
    }
}

/// A store that cannot be used as asked: the request is wrong, with what would be right.
pub(super) fn wrong(error: &StoreError) -> Failure {
    let sqlite = match error {
        StoreError::Sqlite { source, .. } => source.sqlite_error_code(),
        _ => None,
    };
    let failure = match error {
        // Nothing was touched yet: the file cannot be there.
        _ if sqlite == Some(rusqlite::ErrorCode::CannotOpen) => Failure::request(error),
        StoreError::Sqlite { .. } => Failure::tool(error),
        _ => Failure::request(error),
    };
    match error {
        StoreError::Missing(_) => failure.hint("--db FILE or ASSAY_DB says where it is"),
        StoreError::NotAStore { .. } => {
            failure.hint("--db names a store that assay made, or a file that does not exist yet")
        }
        StoreError::Io { .. } | StoreError::ReadOnly(_) => failure.hint(match error {
            StoreError::ReadOnly(path) => may_not_write(path),
            _ => OTHER_STORE.to_owned(),
        }),
        StoreError::HalfWritten(path) => failure.hint(format!(
            "copy {} and its -journal to a directory of yours, and name the copy with --db",
            path.display()
        )),
        StoreError::Older { path, .. } => {
            failure.hint(format!("assay cleanup --db {} migrates it", path.display()))
        }
        StoreError::Newer { .. } => failure.hint("update assay, or name another file with --db"),
        StoreError::UnknownRun { .. } => failure.hint("`assay list` shows the runs"),
        StoreError::Damaged { .. } => {
            failure.hint("the other runs of the store are not affected; see `assay list`")
        }
        StoreError::Busy { .. } | StoreError::TakenOver { .. } => {
            failure.hint("wait for it, or stop it with Ctrl-C or kill")
        }
        StoreError::TooMuch { .. } => failure.hint(
            "`assay export RUN -o run.csv` may have more memory; `assay report run.csv` then reads its values alone",
        ),
        StoreError::Corrupt { path, .. } => {
            failure.hint(format!("`sqlite3 {} .recover` saves what can be read", path.display()))
        }
        StoreError::Sqlite { path, .. } if sqlite == Some(rusqlite::ErrorCode::DatabaseBusy) => failure
            .hint(format!("another program holds {}; `fuser {}` names it", path.display(), path.display())),
        StoreError::Sqlite { path, .. } => {
            failure.hint(format!("is {} writable, and is there space left?", path.display()))
        }
    }
}
