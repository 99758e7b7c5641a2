//! Records of the audit that one group added to a chain, packed into one row.

use wharf_ports::{SealedRecord, StoreError};
use wharf_vocab::{ShardId, Timestamp};

use crate::error::corrupt;

/// Moment, seal and length of a record; its JSON follows.
const HEAD_BYTES: usize = 8 + 32 + 4;

/// Records of one chain, one behind the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct PackedRecords {
    /// The place of the first in its chain.
    pub(crate) n: u64,
    /// When the first happened.
    pub(crate) at: u64,
    pub(crate) count: u32,
    pub(crate) body: Vec<u8>,
}

impl PackedRecords {
    pub(crate) fn push(&mut self, n: u64, at: Timestamp, mac: &[u8; 32], json: &str) {
        if self.count == 0 {
            (self.n, self.at) = (n, at.0);
        }
        self.count += 1;
        self.body.extend(at.0.to_be_bytes());
        self.body.extend(mac);
        self.body.extend(u32::try_from(json.len()).unwrap_or(u32::MAX).to_be_bytes());
        self.body.extend(json.as_bytes());
    }
}

/// A record as it lies in a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PackedRecord<'a> {
    pub(crate) position: i64,
    pub(crate) shard: ShardId,
    pub(crate) n: u64,
    pub(crate) at: Timestamp,
    pub(crate) mac: [u8; 32],
    pub(crate) json: &'a [u8],
}

impl PackedRecord<'_> {
    pub(crate) fn to_sealed(self) -> Result<SealedRecord, StoreError> {
        let id = self.position.cast_unsigned();
        let record = serde_json::from_slice(self.json)
            .map_err(|_| corrupt(format!("the audit's record {id} is damaged")))?;
        let Self { shard, n, at, mac, .. } = self;
        Ok(SealedRecord { id, shard, n, at, record, mac })
    }
}

/// Where a row begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowStart {
    pub(crate) position: i64,
    pub(crate) shard: ShardId,
    pub(crate) n: u64,
    pub(crate) count: u32,
}

/// The records of a row, in order; `None` if it is not one that was ever written.
pub(crate) fn unpack(start: RowStart, mut body: &[u8]) -> Option<Vec<PackedRecord<'_>>> {
    let mut records = Vec::new();
    for at in 0..start.count {
        let (head, rest) = body.split_at_checked(HEAD_BYTES)?;
        let length = u32::from_be_bytes(head[40..].try_into().ok()?);
        let (json, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        records.push(PackedRecord {
            position: start.position.checked_add(i64::from(at))?,
            shard: start.shard,
            n: start.n.checked_add(u64::from(at))?,
            at: Timestamp(u64::from_be_bytes(head[..8].try_into().ok()?)),
            mac: head[8..40].try_into().ok()?,
            json,
        });
        body = rest;
    }
    body.is_empty().then_some(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s010_records_come_out_of_a_row_as_they_went_in() {
        let mut row = PackedRecords::default();
        row.push(7, Timestamp(3), &[1; 32], "{}");
        row.push(8, Timestamp(4), &[2; 32], "{\"a\":1}");
        let start = RowStart { position: 100, shard: ShardId(9), n: row.n, count: row.count };
        let records = unpack(start, &row.body).expect("whole");
        let told: Vec<_> = records
            .iter()
            .map(|it| (it.position, it.n, it.at.0, it.mac[0], it.json.len()))
            .collect();
        assert_eq!(told, [(100, 7, 3, 1, 2), (101, 8, 4, 2, 7)]);
        for cut in 0..row.body.len() {
            assert!(unpack(start, &row.body[..cut]).is_none(), "{cut}");
        }
        row.body.push(0);
        assert!(unpack(start, &row.body).is_none(), "something was added");
    }
}
