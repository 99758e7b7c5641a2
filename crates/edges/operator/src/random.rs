//! Text that nobody can guess.

use wharf_vocab::{Code, Fault};

/// So many random bytes in hexadecimal.
pub(crate) fn hex(bytes: usize) -> Result<String, Fault> {
    use std::fmt::Write as _;
    let mut random = vec![0; bytes];
    let mut filled = 0;
    while filled < bytes {
        let flags = rustix::rand::GetRandomFlags::empty();
        match rustix::rand::getrandom(&mut random[filled..], flags) {
            Ok(got) => filled += got,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => {
                let message = "The operating system gives no random numbers.";
                return Err(Fault::new(Code::CoreInternal, message));
            }
        }
    }
    Ok(random.iter().fold(String::with_capacity(bytes * 2), |mut text, byte| {
        // Writing to text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
