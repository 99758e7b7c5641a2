//! Operatives and principals on real sockets.
