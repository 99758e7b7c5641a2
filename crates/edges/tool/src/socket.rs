//! A connection over a WebSocket.

use std::sync::Arc;

use axum::extract::ws::WebSocket;
use wharf_socket::{Patience, hang_up, pump, split_frames};

use crate::edge::Shared;
use crate::peer::{Closing, Opening, Peer};
use crate::shares::Place;

/// Serves a connection until it ends.
pub(crate) async fn serve(shared: Arc<Shared>, opening: Opening, socket: WebSocket, _place: Place) {
    let write_max = shared.options.write_max;
    let (mut source, mut sink) = split_frames(socket);
    let mut peer = match Peer::begin(&shared, opening).await {
        Ok(peer) => peer,
        Err(Closing { code, reason }) => return hang_up(&mut sink, code, reason, write_max).await,
    };
    let patience = Patience { write: Some(write_max), close: write_max, lingers: false };
    pump(&mut source, &mut sink, &mut peer, patience).await;
    peer.end().await;
}
