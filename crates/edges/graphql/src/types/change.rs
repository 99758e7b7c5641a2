//! What changed.

use super::choice::ChangeKind;
use super::view::view;
use crate::scalars::Int64;

view! {
    /// What changed since the frame before.
    Changes of Changes {
        /// Whether something may have been missed: what is shown must be read again.
        reset: bool,
        /// What changed, each thing once.
        items: Vec<Change>,
    }
}

view! {
    /// Something that changed. What it is now is to be read where it is shown.
    Change of Change {
        /// What it is.
        kind: ChangeKind,
        /// Its world, if it has one.
        world: Option<String>,
        /// Its id.
        id: String,
        /// Grows with every change of the same thing.
        seq: Int64,
        /// How it stands now.
        status: String,
    }
}
