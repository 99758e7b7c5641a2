//! What the attribute writes.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, ItemFn, Lit, LitStr, Meta};

use crate::arguments::{Arguments, check_name};
use crate::function::FunctionShape;

pub(crate) fn expand(arguments: TokenStream, function: TokenStream) -> Result<TokenStream, Error> {
    let arguments = Arguments::parse(arguments)?;
    let span = function.span();
    let function: ItemFn = syn::parse2(function)
        .map_err(|_| Error::new(span, "`#[tool]` stands above an async function"))?;
    let shape = FunctionShape::of(&function)?;
    let sdk = arguments.sdk.map_or_else(|| quote!(::wharf_sdk), |path| quote!(#path));
    let ident = &function.sig.ident;
    let constant = constant(ident);
    let name = arguments
        .name
        .unwrap_or_else(|| LitStr::new(&plain(ident).replace('_', "-"), ident.span()));
    check_name(&name)?;
    let description =
        arguments.description.map_or_else(|| docs(&function.attrs), |given| given.value());
    if description.is_empty() {
        let message = "a tool needs a description: write a doc comment above it, or \
                       `description = \"…\"`";
        return Err(Error::new(ident.span(), message));
    }
    let unit = quote!(());
    let input = shape.input.map_or_else(|| unit.clone(), |input| quote!(#input));
    let output = shape.output;
    let progress = shape.cx.flatten().map_or(unit, |progress| quote!(#progress));
    let parameters = match (shape.input, shape.cx) {
        (Some(_), Some(_)) => quote!(__input, __cx),
        (Some(_), None) => quote!(__input),
        (None, Some(_)) => quote!(__cx),
        (None, None) => quote!(),
    };
    let visibility = &function.vis;
    let terms = &arguments.terms;
    Ok(quote! {
        #function

        #[doc = #description]
        #visibility const #constant: #sdk::Tool<#input, #output, #progress, #sdk::Implemented> =
            #sdk::Tool::new(#name, #description)
                #(#terms)*
                .implemented(|__input, __cx| {
                    let _ = (&__input, &__cx);
                    #sdk::boxed(#ident(#parameters))
                });
    })
}

/// The function's name in capitals.
fn constant(ident: &Ident) -> Ident {
    format_ident!("{}", plain(ident).to_uppercase(), span = ident.span())
}

fn plain(ident: &Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").unwrap_or(&text).to_owned()
}

/// The text of doc comments: lines of a paragraph are joined.
fn docs(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    let mut docs = String::new();
    for line in lines {
        let line = line.trim();
        if line.is_empty() {
            if !docs.is_empty() {
                docs.push_str("\n\n");
            }
        } else {
            if !docs.is_empty() && !docs.ends_with('\n') {
                docs.push(' ');
            }
            docs.push_str(line);
        }
    }
    docs.trim_end().to_owned()
}
