//! It says that it cost more than there is.
