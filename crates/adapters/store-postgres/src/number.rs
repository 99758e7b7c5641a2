//! How the store's numbers and texts are kept in PostgreSQL's.

use std::borrow::Cow;
use std::error::Error;

use bytes::{BufMut as _, BytesMut};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use wharf_vocab::{ShardId, Timestamp};

const MONTH_BITS: u32 = 12;
const COUNT_BITS: u32 = 43;
const SHARD_BITS: u32 = 8;
/// Positions begin with the number of their transaction; so many bits count within it.
const POSITION_BITS: u32 = 20;

const DAY_MS: u64 = 86_400_000;

/// The number of the `n`th stream of a shard: month of making, shard and `n`, so that what belongs
/// to one month and one shard lies together.
pub(crate) fn stream_id(at: Timestamp, shard: ShardId, n: u64) -> i64 {
    let month = month_of(at);
    let n = n & ((1 << COUNT_BITS) - 1);
    ((month << (SHARD_BITS + COUNT_BITS)) | (u64::from(shard.0) << COUNT_BITS) | n).cast_signed()
}

/// How many whole months lie between 1970 and a moment, in UTC, as far as the number of a stream can
/// say.
pub(crate) fn month_of(at: Timestamp) -> u64 {
    // The calendar repeats every 400 years of 146,097 days; years begin in March here, so that the
    // day that is added comes last.
    let days = at.0 / DAY_MS + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day + 2) / 153;
    let (year, month) = (era * 400 + year, from_march + 2);
    (year * 12 + month).saturating_sub(1970 * 12).min((1 << MONTH_BITS) - 1)
}

/// The first position of a transaction.
pub(crate) fn first_position(base: i64, xid: i64) -> i64 {
    base.saturating_add(xid << POSITION_BITS)
}

/// Where the positions of a transaction begin, as an expression; the base is that parameter.
pub(crate) fn first_position_sql(base: &str) -> String {
    format!("{base} + (pg_current_xact_id()::text::bigint << {POSITION_BITS})")
}

/// No transaction that is still going on will write a position below this, as an expression.
pub(crate) fn settled_sql(base: &str) -> String {
    format!("{base} + (pg_snapshot_xmin(pg_current_snapshot())::text::bigint << {POSITION_BITS})")
}

/// A limit or a place that a caller named; what cannot be counted to is as good as the end.
pub(crate) fn clamp(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A limit that a caller named.
pub(crate) fn clamp_len(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A text as PostgreSQL takes it, which has no room for the character 0.
pub(crate) fn to_text(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', '\u{1}']) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('\u{1}', "\u{1}1").replace('\0', "\u{1}0"))
}

/// The text that was kept.
pub(crate) fn from_text(kept: String) -> String {
    if !kept.contains('\u{1}') {
        return kept;
    }
    kept.replace("\u{1}0", "\0").replace("\u{1}1", "\u{1}")
}

/// A whole number beyond what 63 bits can hold, in a `numeric`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole(pub(crate) u128);

impl Whole {
    /// The number, or the largest there is.
    pub(crate) fn saturated(self) -> u64 {
        u64::try_from(self.0).unwrap_or(u64::MAX)
    }
}

impl From<u64> for Whole {
    fn from(number: u64) -> Self {
        Self(number.into())
    }
}

/// `numeric` is sent as digits of base 10,000, the greatest first.
const BASE: u128 = 10_000;

impl ToSql for Whole {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let mut digits = Vec::new();
        let mut left = self.0;
        while left > 0 {
            digits.push(i16::try_from(left % BASE)?);
            left /= BASE;
        }
        out.put_i16(i16::try_from(digits.len())?);
        out.put_i16(i16::try_from(digits.len())? - 1);
        // Neither negative nor with digits behind the point.
        out.put_i16(0);
        out.put_i16(0);
        for digit in digits.into_iter().rev() {
            out.put_i16(digit);
        }
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::NUMERIC
    }

    to_sql_checked!();
}

impl FromSql<'_> for Whole {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let words: Vec<i16> =
            raw.chunks_exact(2).map(|pair| i16::from_be_bytes([pair[0], pair[1]])).collect();
        let [count, weight, sign, _, digits @ ..] = &words[..] else {
            return Err("a number is cut short".into());
        };
        if *sign != 0 {
            return Err("a number is negative".into());
        }
        let (count, weight) = (usize::try_from(*count)?, i32::from(*weight));
        let mut number: u128 = 0;
        for (at, digit) in digits.iter().take(count).enumerate() {
            let Ok(power) = u32::try_from(weight - i32::try_from(at)?) else { break };
            let worth = BASE.checked_pow(power).and_then(|worth| {
                worth.checked_mul(u128::from(u16::try_from(*digit).unwrap_or(0)))
            });
            number = number.saturating_add(worth.unwrap_or(u128::MAX));
        }
        Ok(Self(number))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::NUMERIC
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s009_a_streams_number_tells_its_month_and_shard() {
        for (ms, months) in [
            (0, 0),
            (31 * DAY_MS - 1, 0),
            (31 * DAY_MS, 1),
            (1_767_225_600_000, 56 * 12),
            (1_767_225_599_999, 56 * 12 - 1),
            // 29 February and 1 March 2024.
            (1_709_164_800_000, 54 * 12 + 1),
            (1_709_251_200_000, 54 * 12 + 2),
        ] {
            assert_eq!(month_of(Timestamp(ms)), months, "{ms}");
        }
        let id = stream_id(Timestamp(31 * DAY_MS), ShardId(0xab), 7);
        assert_eq!(id, (1 << 51) | (0xab << 43) | 7);
        assert!(stream_id(Timestamp(u64::MAX), ShardId(255), u64::MAX) > 0);
    }

    #[test]
    fn whole_numbers_come_back_as_they_went_in() {
        let numbers = [0, 1, 9_999, 10_000, 10_001, 20_000_000, u128::from(u64::MAX), 1 << 100];
        for number in numbers {
            let mut raw = BytesMut::new();
            Whole(number).to_sql(&Type::NUMERIC, &mut raw).expect("written");
            assert_eq!(Whole::from_sql(&Type::NUMERIC, &raw).expect("read"), Whole(number));
        }
    }

    #[test]
    fn every_text_can_be_kept() {
        for text in ["", "plain", "a\0b", "\u{1}", "\u{1}0", "\0\u{1}1\0"] {
            let kept = to_text(text);
            assert!(!kept.contains('\0'));
            assert_eq!(from_text(kept.into_owned()), text);
        }
    }
}
