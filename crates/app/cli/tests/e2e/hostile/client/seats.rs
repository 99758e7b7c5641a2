//! It turns who may let a run pass into somebody else.
