//! It sends control frames and never reads.

use std::time::Duration;

use crate::hostile::peers::{Seat, Stage};
use crate::security_page::{Peer, tried};

#[test]
fn an_operator_pings_and_never_reads() {
    let stage = Stage::up();
    let mut seat = Seat::take(&stage.core, &stage.api);
    let sent = seat.socket.flood_pings(Duration::from_secs(30));
    assert!(sent < 48 * 1024 * 1024, "{sent} bytes of pings were taken");
    assert!(seat.socket.is_cut());
    tried(Peer::Operator, "pings and never reads", "pings are counted", "cut off");
}
