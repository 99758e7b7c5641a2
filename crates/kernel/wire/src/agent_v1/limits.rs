//! The numbers that belong to the wire itself. Limits of a session stand beside the session.

/// Largest frame unless the welcome says otherwise.
pub const FRAME_BYTES_MAX: u32 = 4 * 1024 * 1024;
/// Largest frame from an agent that has not been welcomed yet.
pub const HELLO_FRAME_BYTES_MAX: u32 = 64 * 1024;
/// Deepest nesting of a message, the envelope included.
pub const NESTING_MAX: usize = 127;
/// Longest id of a message, call, invocation, question or session.
pub const WIRE_ID_BYTES_MAX: usize = 256;
