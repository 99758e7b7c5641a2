//! kill -9 under a mixed load, again and again, with a ledger outside: every accepted run is there
//! afterwards and over, each end stays as it was seen, money is exact, and nothing acts twice.
//!
//! `make torture SEED=7 KILLS=60` does it for longer than `cargo test`, and with `STORE=postgres`
//! on PostgreSQL, where the core, a backend and the whole server are killed in turns. The seed
//! decides what is asked for and when something is killed; what the kill meets is up to the
//! machine.

mod check;
mod kinds;
mod load;
mod place;

use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wharf_fuzz::Dice;
use wharf_postgres::PostgresServer;

use crate::agents::has_python;
use crate::support::{Core, TestHome, client};
use load::Load;
use place::Place;

/// Kills when nothing else is said.
const KILLS: u64 = 3;
/// How long the core is left alone under load, in milliseconds: at least, and at most that much
/// longer.
const CALM_MS: (u64, usize) = (150, 700);
/// Runs that must have been accepted for each kill, or the test tries less than it says.
const RUNS_PER_KILL: usize = 40;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn kill_9_under_mixed_load_loses_nothing_and_acts_once() {
    if has_python() {
        torture(&TestHome::new(), None, number("WHARF_TORTURE_KILLS").unwrap_or(KILLS));
    }
}

/// The same with the database in PostgreSQL, which is killed as well: one of its backends, which
/// makes it end all others and recover, or all of it at once.
#[test]
fn s015_s049_kill_9_of_core_backend_and_server_under_mixed_load_loses_nothing() {
    if let (true, Some(server)) = (has_python(), wharf_postgres::own()) {
        let home = TestHome::new();
        home.configure(&format!("[store]\nurl = \"{}\"\n", server.database()));
        torture(&home, Some(&server), number("WHARF_TORTURE_KILLS").unwrap_or(KILLS));
    }
}

/// What is killed.
#[derive(Debug, Clone, Copy)]
enum Victim<'a> {
    Core,
    Backend(&'a PostgresServer),
    Server(&'a PostgresServer),
}

impl<'a> Victim<'a> {
    fn of(kill: u64, server: Option<&'a PostgresServer>) -> Self {
        match (server, kill % 3) {
            (Some(server), 1) => Self::Backend(server),
            (Some(server), 2) => Self::Server(server),
            _ => Self::Core,
        }
    }

    /// Kills it and brings it back.
    fn kill(self, home: &TestHome, load: &Load, core: Core, address: &str) -> Core {
        match self {
            Self::Core => {
                core.kill();
                load.is_down();
                return home.up_on(address, &[]);
            }
            Self::Backend(server) => {
                let sql = "SELECT pid FROM pg_stat_activity WHERE application_name = 'wharf'
                           ORDER BY random() LIMIT 1";
                let pid = server.sql("postgres", sql);
                server.kill(pid.parse().expect("the core has a connection"));
            }
            Self::Server(server) => server.kill_and_start_again(),
        }
        core
    }
}

fn torture(home: &TestHome, server: Option<&PostgresServer>, kills: u64) {
    let seed = number("WHARF_TORTURE_SEED").unwrap_or(1);
    let mut dice = Dice::new(seed);
    let mut core = home.up();
    let place = Place::set_up(home);
    let before = check::lacks(home);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let load = Arc::new(Load::new(dice.roll()));
    let address = core.url().trim_start_matches("http://").to_owned();
    let begun = Instant::now();
    let workers = load.start(&runtime);
    let mut slowest = Duration::ZERO;
    for kill in 0..kills {
        load.is_up(client(&core), core.url());
        // Programs are slower to start than the core; each core is killed while they work.
        place.until_more_acts();
        let calm = CALM_MS.0 + u64::try_from(dice.below(CALM_MS.1)).expect("small");
        std::thread::sleep(Duration::from_millis(calm));
        load.until_accepted(RUNS_PER_KILL * usize::try_from(kill + 1).expect("small"));
        let down = Instant::now();
        core = Victim::of(kill, server).kill(home, &load, core, &address);
        slowest = slowest.max(down.elapsed());
    }
    load.is_up(client(&core), core.url());
    load.stop_asking();
    check::until_over(&load, &core, home);
    load.stop(&runtime, workers);
    let found = check::all(home, &core, &load, &place);
    assert_eq!(check::lacks(home), before, "the doctor finds what it did not find before");
    core.stop().code(0);
    check::nothing_left(home, &place);
    home.run(&["audit", "verify"]).code(0);
    let took = begun.elapsed().as_secs_f64();
    // Nothing is left to do if even standard error is gone.
    let _ = writeln!(
        std::io::stderr(),
        "torture: seed {seed}, {kills} kills in {took:.1} s, ready again within {} ms\n{found}",
        slowest.as_millis()
    );
}
