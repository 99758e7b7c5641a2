//! It lets its own work pass.
