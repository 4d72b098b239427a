//! Arguments of mkfs and options of mount: for every filesystem (`mkfs`), or for one alone (`mkfs.xfs`), then in place of the others.
//!
//! Enters: keys and values. Leaves: words in the settings of a target; once all is set, only those for its filesystem.

use super::target_names::of_one_filesystem;
use super::target_settings::{TargetSettings, is_default};

/// What is written behind `mkfs` or `mount`, as words.
///
/// # Errors
/// A quote that is not closed.
pub(super) fn words(key: &str, value: &str) -> Result<Vec<String>, String> {
    if is_default(value) {
        return Ok(Vec::new());
    }
    if key.starts_with("mkfs") {
        let words = shlex::split(value).ok_or_else(|| format!("{key}={value}: a quote is not closed"))?;
        return match words.first().filter(|word| !word.starts_with('-')) {
            Some(_) => Err(format!(
                "{key}={value}: arguments of mkfs begin with a dash; a level with a comma stands in double quotes: \
                 --vary '{key}=default,\"-E lazy_itable_init=0,lazy_journal_init=0\"'"
            )),
            None => Ok(words),
        };
    }
    let options = value.split(',').map(str::trim).filter(|option| !option.is_empty());
    Ok(options.map(str::to_owned).collect())
}

impl TargetSettings {
    /// Sets a key that [`of_one_filesystem`] knows.
    pub(super) fn set_for_one(&mut self, key: &str, value: &str) -> Result<(), String> {
        if let Some(("mkfs", fs)) = of_one_filesystem(key).filter(|(_, fs)| fs.is_in_memory()) {
            let name = fs.name();
            return Err(format!(
                "{key}: {name} has no mkfs; its size and the like are options: mount.{name}"
            ));
        }
        self.per_fs.insert(key.to_owned(), words(key, value)?);
        Ok(())
    }

    /// Once everything is set: what is for its filesystem alone takes the place of what is for all, and the rest goes.
    pub fn settle(&mut self) {
        for (key, words) in std::mem::take(&mut self.per_fs) {
            match of_one_filesystem(&key).filter(|(_, fs)| Some(*fs) == self.fs) {
                Some(("mkfs", _)) => self.mkfs = words,
                Some(_) => self.mount = words,
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::target_settings::of_pairs;
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Result<TargetSettings, String> {
        let mut settings = of_pairs(pairs)?;
        settings.settle();
        Ok(settings)
    }

    #[test]
    fn options_of_one_filesystem_replace_those_of_all() {
        let all = [
            ("mkfs", "-K"),
            ("mkfs.xfs", "-m reflink=0"),
            ("mount.ext4", "noatime, data=journal"),
            ("mount", "noatime"),
            ("mount.btrfs", "default"),
        ];
        let with = |fs: &str| {
            let settings = of(&[&all[..], &[("fs", fs)]].concat()).unwrap();
            assert!(settings.per_fs.is_empty());
            (settings.mkfs.join(" "), settings.mount.join(","))
        };
        let said = |mkfs: &str, mount: &str| (mkfs.to_owned(), mount.to_owned());
        assert_eq!(with("xfs"), said("-m reflink=0", "noatime"));
        assert_eq!(with("ext4"), said("-K", "noatime,data=journal"));
        assert_eq!(with("btrfs"), said("-K", ""), "default takes out what is for all");
        assert_eq!(with("none"), said("-K", "noatime"));
    }

    #[test]
    fn keys_of_other_filesystems_are_refused() {
        for (key, value, expected) in [
            ("mkfs.tmpfs", "-K", "tmpfs has no mkfs; its size and the like are options: mount.tmpfs"),
            ("mkfs.zfs", "-K", "assay makes no zfs; write one of mkfs.xfs, mkfs.ext4, mkfs.btrfs,"),
            ("mkfs.xfs", "-L 'x", "mkfs.xfs=-L 'x: a quote is not closed"),
            ("extsize.xfs", "1m", "no setting of a target is called extsize.xfs"),
        ] {
            let message = of(&[(key, value)]).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }
}
