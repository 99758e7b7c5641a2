//! The requirements that are checked: their numbers in the protocol's page, and a few words each.

use crate::report::Suite;

/// What is checked of a tool server.
pub(super) const RUN: Suite = Suite {
    name: "run-protocol",
    letter: 'T',
    unchecked: "skipped",
    checked: &[
        (1, "health answers at once, also under load"),
        (2, "the subprotocol is asked for and echoed"),
        (3, "a connection that says nothing is closed with 1008"),
        (4, "no mode means mock, an unknown one is refused"),
        (5, "a wrong first frame gets its close code"),
        (6, "inputs and outputs are objects, null or missing"),
        (7, "one Ack, first and within a second"),
        (8, "logs and events have the right form"),
        (9, "partial outputs are objects and cumulative"),
        (10, "one final Response, then the close code 1000"),
        (11, "the cost is a whole number"),
        (12, "every frame is strict JSON"),
        (13, "a silent run shows that it lives"),
        (14, "error texts are safe"),
        (17, "a request that is repeated attaches"),
        (18, "two connections see the same run"),
        (19, "a run outlives its connection and stops on Cancel"),
        (20, "a deadline ends a run as ERR_TIMEOUT"),
        (22, "the token is asked for in the handshake"),
        (24, "only keys named in refs are fetched"),
        (25, "addresses out of bounds are refused"),
        (26, "paths out of bounds are refused"),
        (28, "an unknown destination fails before the start"),
    ],
    additions: &[3, 13, 17, 18, 19, 20, 22, 24, 25, 26, 28],
    silent: "It did not come up with these inputs.",
};
