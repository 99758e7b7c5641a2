//! The message types of every protocol Wharf speaks: shapes and names, nothing else.
//!
//! Wire types never meet domain types in this crate; each edge translates in its own
//! `from_wire.rs` and `to_wire.rs`.

pub mod agent_v1;
pub mod mcp_v1;
pub mod operator_v1;
mod present;
pub mod rest_v1;
pub mod run_v1;
pub mod strict;
pub mod tool_v1;

/// What all protocols over WebSockets share.
pub mod ws {
    /// The subprotocol that browsers offer beside their token, and what is echoed.
    pub const BROWSER_SUBPROTOCOL: &str = "wharf.v1";
    /// Prefix of the subprotocol with which browsers pass their token; it is never echoed.
    pub const BEARER_SUBPROTOCOL: &str = "wharf.bearer.";

    /// Prefix of the subprotocol with which the console passes its half of a session; it is never
    /// echoed.
    pub const SESSION_SUBPROTOCOL: &str = "wharf.session.";

    /// Codes with which a connection is closed.
    pub mod close {
        /// All is done: the run is over, the seat was given up, another connection took over.
        pub const NORMAL: u16 = 1000;
        /// A frame that may not come now.
        pub const PROTOCOL: u16 = 1002;
        /// A binary frame.
        pub const UNSUPPORTED: u16 = 1003;
        /// Not JSON.
        pub const INVALID: u16 = 1007;
        /// Too many violations, too many pings, a request that does not fit, nothing in time.
        pub const POLICY: u16 = 1008;
        /// A frame that is too large.
        pub const TOO_LARGE: u16 = 1009;
        /// Something inside the server went wrong.
        pub const INTERNAL: u16 = 1011;
        /// The core stops.
        pub const RESTART: u16 = 1012;
        /// A reader that is too slow; what it has not got can be had again later.
        pub const TRY_AGAIN: u16 = 1013;
    }
}
