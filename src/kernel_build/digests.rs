//! Digests: what makes one build another one.
//!
//! Enters: bytes, files, directories. Leaves: XXH64 as 16 hexadecimal digits. They tell contents apart; they keep no secret and prove
//! nothing against somebody who makes collisions, who could as well have written another patch.

use std::hash::Hasher;
use std::path::Path;

use twox_hash::XxHash64;

use super::error::BuildError;
use crate::sys::cache;

/// Of several pieces, so that no two lists of pieces run into each other.
pub(super) fn of_bytes(pieces: &[&[u8]]) -> String {
    let mut hasher = XxHash64::with_seed(0);
    for piece in pieces {
        hasher.write_u64(piece.len() as u64);
        hasher.write(piece);
    }
    cache::digits(&hasher)
}

/// Of texts.
pub(super) fn of_texts<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let pieces: Vec<&[u8]> = texts.into_iter().map(str::as_bytes).collect();
    of_bytes(&pieces)
}

/// Of a whole file.
pub(super) fn of_file(path: &Path) -> Result<String, BuildError> {
    cache::digest_of(path).map_err(BuildError::unfit("cannot read", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_run_into_each_other() {
        let all = [
            of_texts(["ab", "c"]),
            of_texts(["a", "bc"]),
            of_texts(["abc"]),
            of_texts(["abc", ""]),
            of_texts([]),
        ];
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len(), "{all:?}");
        assert_eq!(of_texts(["ab", "c"]), all[0]);
    }
}
