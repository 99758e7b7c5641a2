//! Keeps secrets and keys in files.
