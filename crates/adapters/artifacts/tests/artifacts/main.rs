//! The artifact stores as the core uses them, over real files and real sockets.

mod contract;
mod seaweed;
mod support;
