//! It wants other files than those that were meant for it.
