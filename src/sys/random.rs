//! Random bytes that nobody can guess, from the kernel (getrandom(2)).
//!
//! Enters: nothing. Leaves: bytes, or the system's words; never bytes that are not random.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// This many random bytes.
///
/// # Errors
/// The system's words, as on a kernel before 3.17.
pub fn random_bytes<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

/// 32 random hexadecimal digits.
///
/// # Errors
/// As [`random_bytes`].
pub fn random_digits() -> std::io::Result<String> {
    Ok(random_bytes::<16>()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_alike() {
        let (one, other) = (random_digits().unwrap(), random_digits().unwrap());
        assert!(one != other && one.len() == 32 && one.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
