//! The log of the core's own tool server, as far as others read it: which lines are about a run, and
//! how the server ends when its handler is of no use.

/// The status with which `wharf tool serve` ends when its handler cannot be imported. Another start
/// with the same files would end in the same way.
pub const HANDLER_EXIT: i32 = 78;

/// A line of a server's log that is about a run.
#[must_use]
pub fn run_line(run: &str, text: &str) -> String {
    format!("[{run}] {text}")
}

/// What a line says of a run, if it is about that run.
#[must_use]
pub fn line_of_run<'a>(line: &'a str, run: &str) -> Option<&'a str> {
    let rest = line.strip_prefix('[')?.strip_prefix(run)?.strip_prefix(']')?;
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_about_the_run_that_it_names_and_no_other() {
        assert_eq!(line_of_run(&run_line("r1", "  File"), "r1"), Some("  File"));
        assert_eq!(line_of_run("[r1]", "r1"), Some(""));
        for line in ["[r10] x", "r1 x", "[r] 1] x", "x [r1] y", ""] {
            assert_eq!(line_of_run(line, "r1"), None, "{line}");
        }
    }
}
