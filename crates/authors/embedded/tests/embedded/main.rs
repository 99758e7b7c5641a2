//! A core inside a program: tools of an agent, runs, asks, and what a crash leaves.

mod asks;
mod calls;
mod crash;
mod faults;
mod life;
mod tools;
