//~ `Retry` cannot stand around tools of any types
//~ put others around one tool with `scope.layer(…)`
use wharf_sdk::Scope;
use wharf_sdk::layers::Retry;

pub fn wrong(scope: &Scope) {
    scope.around_all(Retry::new());
}
