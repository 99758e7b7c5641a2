//! The function under the attribute: what it takes and gives.

use syn::spanned::Spanned;
use syn::{
    Error, FnArg, GenericArgument, ItemFn, PathArguments, ReturnType, Signature, Type, TypePath,
};

/// What the function takes and gives.
pub(crate) struct FunctionShape<'a> {
    /// The input, or none when the tool takes `()`.
    pub(crate) input: Option<&'a Type>,
    /// The type of progress, if the function takes its `Cx`: `None` inside is `Cx` alone.
    pub(crate) cx: Option<Option<&'a Type>>,
    pub(crate) output: &'a Type,
}

impl<'a> FunctionShape<'a> {
    pub(crate) fn of(function: &'a ItemFn) -> Result<Self, Error> {
        let signature = &function.sig;
        plain(signature)?;
        let mut arguments = Vec::new();
        for argument in &signature.inputs {
            match argument {
                FnArg::Typed(typed) => arguments.push(owned(&typed.ty)?),
                FnArg::Receiver(receiver) => {
                    let message = "a tool is a function of its own, not a method; what it needs \
                                   besides its input is in the configuration of its agent";
                    return Err(Error::new(receiver.span(), message));
                }
            }
        }
        let (input, cx) = match arguments.as_slice() {
            [] => (None, None),
            [one] => match progress_of(one) {
                Some(progress) => (None, Some(progress)),
                None => (Some(*one), None),
            },
            [input, cx] => match progress_of(cx) {
                Some(progress) => (Some(*input), Some(progress)),
                None => {
                    let message = "the second argument of a tool is its `Cx`; put what it takes \
                                   into one type, the first argument";
                    return Err(Error::new(cx.span(), message));
                }
            },
            [_, _, more, ..] => {
                let message =
                    "a tool takes one input and its `Cx`; put what it takes into one type";
                return Err(Error::new(more.span(), message));
            }
        };
        Ok(Self { input, cx, output: output_of(signature)? })
    }
}

/// Whether the function is async and nothing more.
fn plain(signature: &Signature) -> Result<(), Error> {
    if signature.asyncness.is_none() {
        let message = "a tool is an async function: write `async fn`";
        return Err(Error::new(signature.fn_token.span(), message));
    }
    if let Some(parameter) = signature.generics.params.first() {
        let message = "a tool has no generic parameters, because its schema is of definite types";
        return Err(Error::new(parameter.span(), message));
    }
    Ok(())
}

fn owned(of: &Type) -> Result<&Type, Error> {
    match of {
        Type::Reference(reference) => {
            let message = "a tool takes its input and its `Cx` by value, so that a call can leave \
                           the place where it was made";
            Err(Error::new(reference.span(), message))
        }
        other => Ok(other),
    }
}

/// The type of progress, if the type is a `Cx`.
fn progress_of(of: &Type) -> Option<Option<&Type>> {
    let Type::Path(TypePath { path, .. }) = of else { return None };
    let last = path.segments.last().filter(|last| last.ident == "Cx")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return Some(None) };
    let progress = arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(progress) => Some(progress),
        _ => None,
    });
    Some(progress)
}

/// What is inside the `Result` that the function gives.
fn output_of(signature: &Signature) -> Result<&Type, Error> {
    let message = "a tool gives a `Result<Output, Fault>`";
    let ReturnType::Type(_, given) = &signature.output else {
        return Err(Error::new(signature.ident.span(), message));
    };
    let output = match &**given {
        Type::Path(TypePath { path, .. }) => path.segments.last().and_then(|last| {
            let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
            match (last.ident == "Result", arguments.args.first()) {
                (true, Some(GenericArgument::Type(output))) => Some(output),
                _ => None,
            }
        }),
        _ => None,
    };
    output.ok_or_else(|| Error::new(given.span(), message))
}
