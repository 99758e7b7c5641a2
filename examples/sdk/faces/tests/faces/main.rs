//! What an agent meets that is served as a tool server, over a real socket.

mod server;
