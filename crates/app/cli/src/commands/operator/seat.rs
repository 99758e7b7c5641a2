//! The seat: made or taken, and given up.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde_json::json;
use wharf_client::Client;
use wharf_vocab::Code;
use wharf_wire::operator_v1::{NewSeat, SeatMade};

use super::OperatorArgs;
use super::kept::KeptSeat;
use crate::commands::{CliError, Output, Result};
use crate::plain;

/// A seat that is sat on.
#[derive(Debug, Clone)]
pub(super) struct HeldSeat {
    pub(super) sid: String,
    pub(super) token: String,
    /// Whether it was made here.
    pub(super) made: bool,
}

/// Makes a seat, or takes the one that was named.
pub(super) async fn take(args: &OperatorArgs, client: &Client) -> Result<HeldSeat> {
    if let (Some(sid), Some(file)) = (&args.seat, &args.token_file) {
        let text = std::fs::read_to_string(file)
            .map_err(|error| CliError::unreadable(file.display(), &error))?;
        return Ok(HeldSeat { sid: sid.clone(), token: text.trim().to_owned(), made: false });
    }
    let kept = match &args.name {
        Some(name) => Some(KeptSeat::at(client, name).await?),
        None => None,
    };
    if let Some(kept) = &kept
        && let Some((sid, token)) = kept.open(client).await?
    {
        return Ok(HeldSeat { sid, token, made: false });
    }
    let make = |path| make_file(path).map(|file| (path, file));
    let file = args.token_file.as_deref().map(make).transpose()?;
    let named: Vec<&str> =
        args.execute.iter().map(|rule| rule.agent.as_str()).filter(|agent| *agent != "*").collect();
    let new = NewSeat {
        desc: args.desc.clone().or_else(|| args.name.clone()),
        roles: (!args.roles.is_empty()).then(|| args.roles.clone()),
        exclusive_roles: None,
        capability_manifest: (!named.is_empty()).then(|| json!({ "tools": named })),
        person: args.person.then_some(true),
    };
    let made: wharf_client::Result<SeatMade> = client.seats().create(&new).await;
    let made = match (made, file) {
        (Ok(made), Some((path, mut file))) => {
            writeln!(file, "{}", made.token)
                .map_err(|error| CliError::unwritable(path.display(), &error))?;
            made
        }
        (Ok(made), None) => made,
        (Err(failure), file) => {
            if let Some((path, _)) = file {
                // It is empty; that it stays harms nobody.
                let _ = std::fs::remove_file(path);
            }
            return Err(failure.into());
        }
    };
    if let Some(kept) = &kept {
        kept.keep(&made.sid, &made.token)?;
    }
    Ok(HeldSeat { sid: made.sid, token: made.token, made: true })
}

/// A new file that only its owner reads. One that is there may hold another seat's token.
fn make_file(path: &Path) -> Result<std::fs::File> {
    let mut options = std::fs::File::options();
    options.write(true).create_new(true).mode(0o600);
    options.open(path).map_err(|error| {
        CliError::usage(format!("cannot make {} for the token: {error}", path.display()))
    })
}

/// Gives a seat up that was made here, unless it is to be kept.
pub(super) async fn leave(
    args: &OperatorArgs,
    client: &Client,
    taken: &HeldSeat,
    output: Output,
) -> Result<()> {
    if !taken.made {
        return Ok(());
    }
    if let Some(name) = &args.name {
        let come_back = format!("come back with: wharf operator --name {name}");
        output.note(&format!("the seat is kept; {come_back}"));
        return Ok(());
    }
    if args.keep {
        let file = args.token_file.as_deref().unwrap_or(Path::new("FILE")).display().to_string();
        output.note(&format!(
            "the seat is kept; come back with: wharf operator --seat {} --token-file {}",
            plain::line(&taken.sid),
            plain::line(&file),
        ));
        return Ok(());
    }
    let given_up = match client.found_again() {
        Ok(client) => client.seats().remove(&taken.sid).await,
        Err(failure) => Err(failure),
    };
    if let Some(file) = &args.token_file {
        // The token opens nothing any more.
        let _ = std::fs::remove_file(file);
    }
    match given_up {
        Err(failure) if failure.is(Code::SeatNotFound) => Ok(()),
        Err(failure) if failure.is_outage() => {
            output.note("the core is away, so the seat was not closed; it expires by itself");
            Ok(())
        }
        other => Ok(other?),
    }
}

/// Headers with another token than the caller's.
pub(super) fn bearer(token: &str) -> wharf_client::Result<HeaderMap> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| {
        let message = "the token holds characters that no token has";
        wharf_client::Error::new(Code::RequestInvalid, message)
    })?;
    value.set_sensitive(true);
    Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
}
