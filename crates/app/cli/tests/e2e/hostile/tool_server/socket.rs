//! It wants to be taken for another server.
