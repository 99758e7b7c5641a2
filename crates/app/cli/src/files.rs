//! Files on their way into a world and out of it: streamed, hashed, retried, resumed.
//!
//! What is held in memory does not grow with a file. What a person sees of it goes through
//! `Meter`.

mod download;
mod incoming;
mod listing;
mod meter;
mod partial;
mod patience;
mod place;
mod resume;
mod source;
mod target;
mod upload;

pub(crate) use download::{Fetch, get};
pub(crate) use listing::{Entry, Listing, Order};
pub(crate) use meter::Meter;
pub(crate) use place::{Place, prefix};
pub(crate) use resume::Memory;
pub(crate) use source::Opened;
pub(crate) use target::Target;
pub(crate) use upload::{Sending, Sizes, Stage, from_stdin, put};
