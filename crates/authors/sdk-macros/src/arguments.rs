//! What is said in the brackets of the attribute.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::parse::Parser;
use syn::{Error, LitBool, LitStr, Path};

/// What is said in the brackets of the attribute.
#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    /// Where the SDK is found, for crates that know it by another name.
    pub(crate) sdk: Option<Path>,
    /// What else is said of the tool, as calls of the definition's methods.
    pub(crate) terms: Vec<TokenStream>,
}

impl Arguments {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self, Error> {
        let mut arguments = Self::default();
        let parser = syn::meta::parser(|meta| {
            if meta.path.is_ident("name") {
                arguments.name = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("description") {
                arguments.description = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("sdk") {
                arguments.sdk = Some(meta.value()?.parse::<LitStr>()?.parse()?);
            } else if let Some(method) = meta.path.get_ident().filter(|it| is_term(it)) {
                let given = meta.value()?.parse::<LitBool>()?;
                arguments.terms.push(quote!(.#method(#given)));
            } else {
                let known = "`#[tool]` knows `name = \"…\"`, `description = \"…\"`, \
                             `side_effects = …`, `requires_directive = …`, `durable = …` and \
                             `sdk = \"…\"`";
                return Err(meta.error(known));
            }
            Ok(())
        });
        parser.parse2(tokens)?;
        Ok(arguments)
    }
}

/// Whether a word says something that is so or not.
fn is_term(word: &Ident) -> bool {
    word == "side_effects" || word == "requires_directive" || word == "durable"
}

/// A name that the SDK would refuse is refused here already.
pub(crate) fn check_name(name: &LitStr) -> Result<(), Error> {
    let text = name.value();
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
    if text.is_empty() || text.len() > 128 || !text.bytes().all(is_letter) {
        let message = "a tool's name is 1 to 128 letters, digits, dots, dashes and underscores";
        return Err(Error::new(name.span(), message));
    }
    if ["form", "confirmation", "sample", "notification"].contains(&text.as_str()) {
        let message = "this name is taken: questions, messages or models are called so";
        return Err(Error::new(name.span(), message));
    }
    Ok(())
}
