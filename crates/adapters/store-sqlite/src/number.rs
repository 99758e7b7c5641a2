//! How the store's numbers are kept in SQLite's, which are signed.
//!
//! A row of the journal is found by one number made of its stream, its class and the place of
//! its first entry. So an append is a single insert into a single tree, the rows of a stream lie
//! together in order, and recovery reads entries without passing over progress.

use wharf_ports::plan::Class;
use wharf_ports::{StoreError, StoreErrorKind};

const SEQ_BITS: u32 = 25;
const CLASS_BITS: u32 = 1;
const STREAM_BITS: u32 = 63 - SEQ_BITS - CLASS_BITS;

fn class_bit(class: Class) -> i64 {
    match class {
        Class::Entries => 0,
        Class::Progress => 1,
    }
}

/// The number of the row of `stream` that begins at `first_seq`.
pub(crate) fn row_id(stream: i64, class: Class, first_seq: u64) -> Result<i64, StoreError> {
    let full = || StoreError {
        kind: StoreErrorKind::Full,
        message: format!("stream {stream} cannot hold an entry {first_seq}"),
    };
    let seq = i64::try_from(first_seq).ok().filter(|seq| *seq < 1 << SEQ_BITS).ok_or_else(full)?;
    if !(0..1 << STREAM_BITS).contains(&stream) {
        return Err(full());
    }
    Ok(first_row(stream, class) + seq)
}

/// No row of the class has a smaller number.
pub(crate) fn first_row(stream: i64, class: Class) -> i64 {
    (stream << (SEQ_BITS + CLASS_BITS)) | (class_bit(class) << SEQ_BITS)
}

/// No row of the same stream and class has a smaller number.
pub(crate) fn first_of_its_stream(row_id: i64) -> i64 {
    row_id & !((1 << SEQ_BITS) - 1)
}

/// No row of the class has a larger number.
pub(crate) fn last_row(stream: i64, class: Class) -> i64 {
    first_row(stream, class) + (1 << SEQ_BITS) - 1
}

/// The place of the first entry of a row.
pub(crate) fn first_seq(row_id: i64) -> u64 {
    (row_id & ((1 << SEQ_BITS) - 1)).cast_unsigned()
}

/// An expression for the first row of entries of the stream in column `id`, for joins.
pub(crate) fn first_row_sql(id: &str) -> String {
    format!("({id} << {})", SEQ_BITS + CLASS_BITS)
}

/// The numbers that rows of entries of one stream span.
pub(crate) const ENTRIES_SPAN: i64 = 1 << SEQ_BITS;

/// A limit or a place that a caller named; what SQLite cannot count to is as good as the end.
pub(crate) fn clamp(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A limit that a caller named.
pub(crate) fn clamp_len(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_stream_lie_together_entries_first() {
        let entries = |seq| row_id(7, Class::Entries, seq).expect("fits");
        let progress = |seq| row_id(7, Class::Progress, seq).expect("fits");
        assert!(entries(1) < entries(2) && entries(1 << 24) < progress(1));
        assert!(progress(1 << 24) < row_id(8, Class::Entries, 1).expect("fits"));
        for (class, row) in [(Class::Entries, entries(9)), (Class::Progress, progress(9))] {
            assert_eq!(first_seq(row), 9);
            assert!(first_row(7, class) < row && row < last_row(7, class));
        }
        assert_eq!(last_row(7, Class::Entries) - first_row(7, Class::Entries), ENTRIES_SPAN - 1);
    }

    #[test]
    fn a_stream_that_cannot_be_numbered_is_refused() {
        assert!(row_id(1, Class::Entries, 1 << SEQ_BITS).is_err());
        assert!(row_id(1, Class::Entries, u64::MAX).is_err());
        assert!(row_id(1 << STREAM_BITS, Class::Progress, 1).is_err());
        let last = (1 << STREAM_BITS) - 1;
        assert!(row_id(last, Class::Progress, (1 << SEQ_BITS) - 1).expect("fits") > 0);
    }
}
