//! It sends control frames and never reads.
