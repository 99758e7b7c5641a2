//! Asks the linker of a release for a small program, as far as it understands that: functions that
//! came out alike are kept once, and relocations are packed.
//!
//! Rust promises of no two functions that they have different addresses, and of the C code in the
//! program none compares functions that could be taken for one another (decision 0066). What a
//! linker or a system does not know is left out: a probe is linked, and run where that can be.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs, io};

/// What makes a program small, each for itself.
const ARGUMENTS: [&str; 2] = ["-Wl,--icf=all", "-Wl,-z,pack-relative-relocs"];

fn main() -> io::Result<()> {
    let mut cargo = io::stdout();
    writeln!(cargo, "cargo::rerun-if-changed=build.rs")?;
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|it| it == value);
    if !is("PROFILE", "release") || !is("CARGO_CFG_TARGET_OS", "linux") {
        return Ok(());
    }
    for argument in ARGUMENTS {
        if works(argument)? {
            writeln!(cargo, "cargo::rustc-link-arg-bins={argument}")?;
        }
    }
    Ok(())
}

/// Whether a program that is linked with this argument comes about, and runs.
fn works(argument: &str) -> io::Result<bool> {
    let text = |name: &str| env::var(name).unwrap_or_default();
    let folder = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let (source, probe) = (folder.join("probe.rs"), folder.join("probe"));
    fs::write(&source, "fn main() {}\n")?;
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc")));
    rustc.args(text("CARGO_ENCODED_RUSTFLAGS").split('\x1f').filter(|flag| !flag.is_empty()));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut flag = OsString::from("-Clinker=");
        flag.push(linker);
        rustc.arg(flag);
    }
    rustc.args(["--edition", "2024", "--target", &text("TARGET")]);
    rustc.arg(format!("-Clink-arg={argument}")).arg("-o").arg(&probe).arg(&source);
    // What it says is of no interest: it is tried whether it can be done.
    let linked = rustc.output().is_ok_and(|output| output.status.success());
    let runs = || Command::new(&probe).status().is_ok_and(|status| status.success());
    Ok(linked && (text("HOST") != text("TARGET") || runs()))
}
