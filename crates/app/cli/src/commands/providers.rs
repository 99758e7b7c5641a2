//! What `wharf agents` and `wharf tools` share: both look after programs that the core starts.

pub(super) mod limits;
pub(super) mod logs;
pub(super) mod pick;
pub(super) mod words;
