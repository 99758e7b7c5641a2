//! The layers that fence a program in, in the order in which they are put on: [`limits`],
//! [`namespaces`] with a [`view`] of files that [`root`] builds and a [`network`] of its own,
//! [`landlock`], [`seccomp`].
//!
//! Each layer either holds as it was ordered or is an error; whoever puts them on then starts
//! nothing. Which layers a machine has is found out beforehand by trying. Nothing here decides
//! what a program may see: that stands in the order.
//!
//! Landlock, the filter, capabilities and the promise to gain no privileges belong to a thread
//! and to what it starts. That is how the first process of a namespace stays outside the fence
//! it puts around the program.

pub(crate) mod landlock;
pub(crate) mod limits;
pub(crate) mod namespaces;
pub(crate) mod network;
mod programs;
pub(crate) mod root;
pub(crate) mod seccomp;
pub(crate) mod view;

/// Where a program in namespaces finds the files that it gets and gives.
pub(crate) const ARTIFACTS_DIR: &str = "/artifacts";

/// Where a program in namespaces finds its secrets.
pub(crate) const SECRETS_DIR: &str = "/run/wharf/secrets";
