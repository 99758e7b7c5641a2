//! Counts what calls of the SDK allocate and keep. It is a program of its own because only one
//! allocator can be everybody's.
//!
//! One line for each kind of call: what it is, allocations per call, bytes kept per finished call.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[path = "../sdk/scene.rs"]
mod scene;

use scene::{LAYERS, Over, ROUTE, Scene, question};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Calls before anything is counted, so that what is kept once is not taken for a leak.
const WARM: usize = 2_000;

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "the lines are what the program is for")]
async fn main() -> anyhow::Result<()> {
    let count: usize = std::env::args().nth(1).unwrap_or_default().parse().unwrap_or(10_000);
    let count = count.max(1_000);
    for (over, what) in [
        (Over::Nothing, "local call"),
        (Over::Memory, "in memory with JSON and checks"),
        (Over::WebSocket, "over a WebSocket"),
    ] {
        for layers in LAYERS {
            let scene = Scene::open(layers, over).await?;
            calls(&scene, WARM).await?;
            let region = Region::new(ALLOCATOR);
            calls(&scene, count).await?;
            let change = region.change();
            let made = change.allocations as f64 / count as f64;
            let kept = change.bytes_allocated as f64 + change.bytes_reallocated as f64
                - change.bytes_deallocated as f64;
            println!("{what} through {layers} layers\t{made:.2}\t{:.3}", kept / count as f64);
            scene.close().await;
        }
    }
    // What the last scene still winds up is not counted.
    println!();
    Ok(())
}

async fn calls(scene: &Scene, count: usize) -> anyhow::Result<()> {
    let scope = scene.scope();
    for _ in 0..count {
        ROUTE.call(&scope, question()).await?;
    }
    // Whatever a finished call still has to tell the other side is told now.
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
    Ok(())
}
