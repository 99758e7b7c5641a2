//! The server: listens, keeps runs, and lets a handler execute them.
