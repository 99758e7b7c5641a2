//! The sides of a [`Handle`]: what can be asked of the engine, about a dozen calls each.

use super::Handle;

macro_rules! facets {
    ($($(#[$doc:meta])* $name:ident $facet:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name<'a>(pub(super) &'a Handle);

        impl Handle {
            $(#[$doc])*
            pub fn $facet(&self) -> $name<'_> {
                $name(self)
            }
        }
    )*};
}

facets! {
    /// Asking for runs, showing, watching and canceling them.
    RunCalls runs,
    /// The files of worlds.
    FileCalls files,
    /// Worlds, and what they have cost.
    WorldCalls worlds,
    /// Questions and approvals, and notices of what became of them.
    AskCalls asks,
    /// The seats of operators.
    SeatCalls seats,
    /// Providers and their tools.
    ProviderCalls providers,
    /// Who may do what: tokens, rights, keys, and what nobody may see.
    TrustCalls trust,
    /// What was done, for whoever looks later.
    AuditCalls audit,
}
