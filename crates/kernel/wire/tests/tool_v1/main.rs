//! The tool wire by its example files, which the SDKs in other languages read, too.

mod examples;
