//! It changes what was approved.
