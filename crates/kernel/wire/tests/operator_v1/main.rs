//! The operator wire from outside: the example files, ours, the original protocol's own, and the
//! calls of a client of a later version of it.
//!
//! The number in a test's name is the requirement of the operator protocol that it proves.

mod examples;
