//! The requirements that are checked: their numbers in the protocol's page, and a few words each.

use crate::report::Suite;

/// What is checked of an agent.
pub(crate) const AGENT: Suite = Suite {
    name: "agent-protocol",
    letter: 'R',
    unchecked: "not applicable",
    checked: CHECKED,
    additions: ADDITIONS,
    silent: "It did not come up with this agent.",
};

/// What the original protocol leaves open, or has no message for: that a frame which is no object
/// ends the connection, what a reply names, calls that come twice, errors that answer, and Wharf's
/// own messages and fields.
const ADDITIONS: &[u16] =
    &[3, 4, 5, 7, 26, 27, 37, 62, 64, 90, 91, 92, 133, 134, 148, 150, 159, 165, 168];

/// Every number a report has a row for, in order.
pub(crate) const CHECKED: &[(u16, &str)] = &[
    (1, "frames are a length and that many bytes"),
    (2, "text beyond ASCII comes through unchanged"),
    (3, "a payload is one JSON object"),
    (4, "frames are UTF-8"),
    (5, "an empty frame is malformed"),
    (6, "how bytes are cut makes no difference"),
    (7, "half a frame is never acted on"),
    (8, "a frame of exactly 4 MiB is taken"),
    (9, "a larger frame is refused by its length"),
    (12, "no frame is above the limit of the welcome"),
    (17, "calls are matched by id, not by order"),
    (19, "every message has v, type, id, ts, payload"),
    (22, "times with offset and fraction are taken"),
    (23, "no message id is used twice"),
    (25, "unknown fields are ignored"),
    (26, "no key stands twice"),
    (27, "messages are not nested too deeply"),
    (29, "errors have a code and a message"),
    (30, "no debug fields in an ordinary run"),
    (32, "no message that only a core may send"),
    (35, "correlation fields return unchanged"),
    (37, "replies name the message they answer"),
    (39, "who calls does not change the outcome"),
    (40, "the first message is a complete hello"),
    (52, "the token is shown nowhere"),
    (61, "a refused agent exits non-zero and stays away"),
    (62, "a version that was not offered ends it"),
    (64, "goodbye and end of stream end it within 5 s"),
    (68, "tools are registered after the welcome"),
    (71, "tool ids are agent id, slash, name"),
    (88, "wrong input fails as tool.invalid_input"),
    (90, "unknown tools fail as tool.not_found"),
    (91, "a call repeated in flight is not run again"),
    (92, "a call repeated later is not run again"),
    (94, "a flood of calls is survived"),
    (105, "seq is 1, 2, 3 and so on"),
    (107, "channels and their data have the right form"),
    (109, "no stream after done or after the result"),
    (113, "large output is bounded and marked"),
    (117, "exactly one result for each call"),
    (121, "results carry output or error"),
    (123, "canceled results say so in their code"),
    (127, "calls start before they finish"),
    (130, "a canceled sleep stops in time"),
    (131, "never both canceled and succeeded"),
    (133, "canceling an unknown call does nothing"),
    (134, "canceling twice is canceling once"),
    (137, "the acknowledgement precedes the result"),
    (139, "heartbeats keep their interval"),
    (140, "heartbeats tell the truth"),
    (147, "a ping gets one pong"),
    (148, "unknown requests get protocol.unknown_type"),
    (149, "unknown notices are ignored"),
    (150, "errors are not answered by errors"),
    (154, "no stack trace in any message"),
    (159, "calls through the core belong to a call"),
    (165, "a reported cost is a whole number"),
    (168, "fractions of progress lie between 0 and 1"),
];
