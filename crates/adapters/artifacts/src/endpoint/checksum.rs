//! Checksums that a client sends along with an object.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Crc32, Crc32c, Crc64Nvme, Md5, Sha1, Sha256};
use s3s::dto::{Checksum, PutObjectInput};
use wharf_ports::{ByteStream, ObjectError, ObjectErrorKind};

/// What the body of an object sums up to.
#[derive(PartialEq)]
pub(super) struct Sums {
    sums: Checksum,
    md5: Option<String>,
}

/// Sums that are being made.
struct ChecksumState {
    hasher: ChecksumHasher,
    md5: Option<Md5>,
}

impl Sums {
    /// What a request says its body sums up to.
    pub(super) fn of(input: &PutObjectInput) -> Self {
        let sums = Checksum {
            checksum_crc32: input.checksum_crc32.clone(),
            checksum_crc32c: input.checksum_crc32c.clone(),
            checksum_crc64nvme: input.checksum_crc64nvme.clone(),
            checksum_sha1: input.checksum_sha1.clone(),
            checksum_sha256: input.checksum_sha256.clone(),
            ..Checksum::default()
        };
        Self { sums, md5: input.content_md5.clone() }
    }

    /// The same body, which fails in the end if it sums up to anything else.
    pub(super) fn check(self, body: ByteStream) -> ByteStream {
        if self.md5.is_none() && self.sums == Checksum::default() {
            return body;
        }
        let running = self.begin();
        let checked = stream::unfold(Some((body, running, self)), |state| async {
            let (mut body, mut running, expected) = state?;
            match body.next().await {
                Some(Ok(piece)) => {
                    running.update(&piece);
                    Some((Ok(piece), Some((body, running, expected))))
                }
                Some(Err(error)) => Some((Err(error), None)),
                None if running.end() == expected => None,
                None => Some((Err(wrong()), None)),
            }
        });
        checked.boxed()
    }

    fn begin(&self) -> ChecksumState {
        let hasher = ChecksumHasher {
            crc32: self.sums.checksum_crc32.as_ref().map(|_| Crc32::new()),
            crc32c: self.sums.checksum_crc32c.as_ref().map(|_| Crc32c::new()),
            sha1: self.sums.checksum_sha1.as_ref().map(|_| Sha1::new()),
            sha256: self.sums.checksum_sha256.as_ref().map(|_| Sha256::new()),
            crc64nvme: self.sums.checksum_crc64nvme.as_ref().map(|_| Crc64Nvme::new()),
        };
        ChecksumState { hasher, md5: self.md5.as_ref().map(|_| Md5::new()) }
    }
}

impl ChecksumState {
    fn update(&mut self, piece: &Bytes) {
        self.hasher.update(piece);
        if let Some(md5) = &mut self.md5 {
            md5.update(piece);
        }
    }

    fn end(self) -> Sums {
        let md5 = self.md5.map(|md5| STANDARD.encode(md5.finalize()));
        Sums { sums: self.hasher.finalize(), md5 }
    }
}

fn wrong() -> ObjectError {
    ObjectError::new(ObjectErrorKind::Mismatch, "a checksum is not the one that was sent")
}
