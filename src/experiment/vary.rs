//! `--vary KEY=LEVEL,LEVEL…` as text.
//!
//! Enters: the text behind the flag. Leaves: a factor, each of whose levels sets its key. Commas divide levels; `\,` and
//! quotes keep one.

use std::collections::BTreeSet;

use super::described::{Assignment, Factor, Level, Namespace};

/// The namespace of a key and the key without it.
pub(super) fn split_namespace(key: &str) -> (Namespace, &str) {
    if let Some(rest) = key.strip_prefix("job.") {
        (Namespace::Job, rest)
    } else if let Some(rest) = key.strip_prefix("target.") {
        (Namespace::Target, rest)
    } else {
        (Namespace::Any, key)
    }
}

/// A level that sets its factor's key to its own label.
pub(super) fn plain_level(key: &str, value: &str) -> Level {
    let (namespace, key) = split_namespace(key);
    let set = vec![Assignment { namespace, key: key.to_owned(), value: value.to_owned() }];
    Level { label: value.to_owned(), set }
}

/// Kernels and patches are called by their files, `6.1.0-50-amd64` and `a.patch+b.patch`, where those names differ; a path fills a column.
pub(super) fn name_kernels(levels: &mut [Level]) {
    let short = |level: &Level| match level.set.as_slice() {
        [set] if set.value == level.label => match set.key.as_str() {
            "kernel" => kernel_name(&level.label).to_owned(),
            "patch" => level.label.split('+').map(file_name).collect::<Vec<_>>().join("+"),
            "source" | "config" => file_name(&level.label).to_owned(),
            _ => level.label.clone(),
        },
        _ => level.label.clone(),
    };
    let short: Vec<String> = levels.iter().map(short).collect();
    if short.iter().collect::<BTreeSet<_>>().len() == short.len() {
        levels.iter_mut().zip(short).for_each(|(level, short)| level.label = short);
    }
}

fn file_name(path: &str) -> &str {
    path.trim().trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// `6.1.0-50-amd64` of `k/linux-image-6.1.0-50-amd64_6.1.176-1_amd64.deb` and of `/boot/vmlinuz-6.1.0-50-amd64`.
fn kernel_name(path: &str) -> &str {
    let file = file_name(path);
    let package = file.strip_suffix(".deb").and_then(|name| name.split('_').next());
    let name = package.unwrap_or(file);
    ["linux-image-", "vmlinuz-", "bzImage-"].iter().find_map(|start| name.strip_prefix(start)).unwrap_or(name)
}

/// Reads `KEY=LEVEL,LEVEL`.
///
/// # Errors
/// A sentence that says what would be right.
pub(super) fn parse_vary(text: &str) -> Result<Factor, String> {
    let form = "write KEY=LEVEL,LEVEL, the baseline first, e.g. direct=0,1";
    let Some((key, levels)) = text.split_once('=') else {
        return Err(format!("'{text}' names no levels; {form}"));
    };
    let key = key.trim();
    if split_namespace(key).1.is_empty() || key.contains(char::is_whitespace) {
        return Err(format!("'{key}' is not a key; {form}"));
    }
    let levels = split_levels(levels)?;
    if let Some(at) = levels.iter().position(String::is_empty) {
        return Err(format!("level {} of {key} is empty; {form}", at + 1));
    }
    let mut levels: Vec<Level> = levels.iter().map(|level| plain_level(key, level)).collect();
    name_kernels(&mut levels);
    Ok(Factor { name: key.to_owned(), levels })
}

fn split_levels(text: &str) -> Result<Vec<String>, String> {
    let mut levels = vec![String::new()];
    let mut quote = None;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let Some(level) = levels.last_mut() else { break };
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\\', Some('"') | None) if matches!(characters.peek(), Some(',' | '\\' | '"' | '\'')) => {
                level.extend(characters.next());
            }
            (c, Some(_)) => level.push(c),
            // A quote opens only at the front: 5'' stays as it is.
            ('"' | '\'', None) if level.trim().is_empty() => {
                level.clear();
                quote = Some(c);
            }
            (',', None) => levels.push(String::new()),
            (c, None) => level.push(c),
        }
    }
    match quote {
        Some(open) => Err(format!("a quote {open} in {text} is not closed")),
        None => Ok(levels.iter().map(|level| level.trim().to_owned()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<String> {
        parse_vary(text).unwrap().levels.into_iter().map(|level| level.label).collect()
    }

    #[test]
    fn levels_are_divided_by_commas() {
        assert_eq!(labels("bs=4k, 64k,1m"), ["4k", "64k", "1m"]);
        assert_eq!(labels(r"bs=4k\,8k,16k"), ["4k,8k", "16k"]);
        assert_eq!(labels(r#"mount="noatime,data=ordered",'a,b'"#), ["noatime,data=ordered", "a,b"]);
        assert_eq!(labels("sysfs:queue/scheduler=none"), ["none"]);
        assert_eq!(labels("kernel=v=1,v=2"), ["v=1", "v=2"]);
    }

    #[test]
    fn kernels_are_called_by_their_release() {
        let package = "k/linux-image-6.12.1+deb12-amd64_6.12.1-1_amd64.deb";
        assert_eq!(
            labels(&format!("kernel=host,/boot/vmlinuz-6.1,{package},a/bzImage")),
            ["host", "6.1", "6.12.1+deb12-amd64", "bzImage"]
        );
        assert_eq!(labels("target.kernel=a/bzImage,b/bzImage"), ["a/bzImage", "b/bzImage"]);
        assert_eq!(parse_vary("kernel=a/vmlinuz-6").unwrap().levels[0].set[0].value, "a/vmlinuz-6");
    }

    #[test]
    fn patches_are_called_by_their_files() {
        assert_eq!(
            labels("patch=none,p/a.patch,p/a.patch+q/b.patch"),
            ["none", "a.patch", "a.patch+b.patch"]
        );
        assert_eq!(labels("patch=p/a.patch,q/a.patch"), ["p/a.patch", "q/a.patch"], "the same name twice");
        assert_eq!(labels("rev=v6.11,v6.12"), ["v6.11", "v6.12"]);
    }

    #[test]
    fn namespaces_are_taken_off_the_key() {
        let factor = parse_vary("job.direct=0,1").unwrap();
        assert_eq!(factor.name, "job.direct");
        assert_eq!(factor.levels[1].set[0].namespace, Namespace::Job);
        assert_eq!(factor.levels[1].set[0].key, "direct");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            ("direct", "names no levels"),
            ("=1,2", "is not a key"),
            ("job.=1,2", "is not a key"),
            ("bs=4k,,8k", "level 2 of bs is empty"),
            ("bs=", "level 1 of bs is empty"),
            ("bs='4k,8k", "not closed"),
        ] {
            let message = parse_vary(text).unwrap_err();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
