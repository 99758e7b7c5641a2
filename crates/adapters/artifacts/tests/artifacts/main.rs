//! The artifact stores as the core uses them, over real files and real sockets.

mod contract;
mod endpoint;
mod faulty;
mod files;
mod gate;
mod heads;
mod seaweed;
mod support;
mod trouble;
mod versions;
