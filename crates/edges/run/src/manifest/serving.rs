//! How a tool is served: exactly one of four ways.

use std::path::Path;

use wharf_domain::provider::Serving;
use wharf_hosting::ManifestFields;
use wharf_vocab::Fault;

use super::{file, invalid};
use crate::link::ServerEndpoint;

const WAYS: [&str; 4] = ["handler", "exec", "image", "url"];
const WORD_BYTES_MAX: usize = 4_096;
const IMAGE_BYTES_MAX: usize = 500;
const URL_BYTES_MAX: usize = 2_000;
/// What stands for the port in a program's arguments.
const PORT: &str = "{port}";

/// Reads how the tool is served.
pub(super) fn read(fields: &ManifestFields<'_>, folder: &Path) -> Result<Serving, Fault> {
    let named: Vec<&str> = WAYS.into_iter().filter(|way| fields.get(way).is_some()).collect();
    let [way] = named[..] else {
        let what = if named.is_empty() { "none".to_owned() } else { named.join(" and ") };
        let ways = "exactly one of handler, exec, image and url";
        return Err(invalid(format!("The manifest must have {ways}, and it has {what}.")));
    };
    if way != "handler" {
        fields.none_of(&["cold"], "only a handler can start cold")?;
        fields.none_of(&["function"], "only a handler has functions")?;
    }
    match way {
        "handler" => handler(fields, folder),
        "exec" => program(fields),
        "image" => image(fields),
        _ => remote(fields),
    }
}

fn handler(fields: &ManifestFields<'_>, folder: &Path) -> Result<Serving, Fault> {
    let file = fields.text("handler", WORD_BYTES_MAX)?;
    if !file::is_below(&file) {
        return Err(fields.wrong("handler", "it must be the name of a file in the folder"));
    }
    let file = file.strip_prefix("./").map_or(file.as_str(), |file| file).to_owned();
    if !file::is_there(folder, &file) {
        let why = format!("{file} is not there, or is not a plain file in the folder");
        return Err(fields.wrong("handler", &why));
    }
    let function = fields.optional_text("function", WORD_BYTES_MAX)?;
    Ok(Serving::Handler { file, cold: fields.flag("cold")?.unwrap_or(false), function })
}

fn program(fields: &ManifestFields<'_>) -> Result<Serving, Fault> {
    let argv = fields.texts("exec", WORD_BYTES_MAX)?.unwrap_or_default();
    match argv.first() {
        None => return Err(fields.wrong("exec", "it must name a program")),
        Some(program) if program.is_empty() || program.chars().any(char::is_control) => {
            let why = "it must be the name or the path of a program";
            return Err(fields.wrong("exec[0]", why));
        }
        Some(_) => {}
    }
    if let Some(at) = argv.iter().position(|word| word.contains('\0')) {
        return Err(fields.wrong(&format!("exec[{at}]"), "it must not hold a zero byte"));
    }
    if !argv.iter().skip(1).any(|word| word.contains(PORT)) {
        let why = "no argument holds {port}, so the program could not know where to listen";
        return Err(fields.wrong("exec", why));
    }
    Ok(Serving::Program { argv })
}

/// An image by its digest, since a name can stand for another image tomorrow.
fn image(fields: &ManifestFields<'_>) -> Result<Serving, Fault> {
    let image = fields.text("image", IMAGE_BYTES_MAX)?;
    let Some((name, digest)) = image.split_once("@sha256:") else {
        let why = "it must be pinned, as in name@sha256: and 64 hex digits";
        return Err(fields.wrong("image", why));
    };
    let is_digest = digest.len() == 64
        && digest.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if !is_digest {
        let why = "behind sha256: there must be 64 hex digits in lower case";
        return Err(fields.wrong("image", why));
    }
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:".contains(&byte);
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if !begins || !name.bytes().all(is_letter) {
        return Err(fields.wrong("image", "before the @ there must be an image's name"));
    }
    Ok(Serving::Image { image })
}

fn remote(fields: &ManifestFields<'_>) -> Result<Serving, Fault> {
    let url = fields.text("url", URL_BYTES_MAX)?;
    ServerEndpoint::read(&url).map_err(|why| fields.wrong("url", why))?;
    Ok(Serving::Remote { url })
}
