//! How a message of REST becomes a type of GraphQL.
//!
//! A type names each field of the message it shows and nothing else may be in the message: a field
//! that REST gains and GraphQL lacks does not compile. What differs between the two is only how
//! values are written, which [`View`] says once for each kind of value.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use wharf_vocab::{
    AskId, DateTime, FlowId, GrantId, LaunchId, Object, ProviderId, RunId, SecretName, ToolId,
    WorldId,
};

use crate::scalars::{self, Int64};

/// What is made of a value of REST.
pub(crate) trait View<T> {
    fn view(of: T) -> Self;
}

macro_rules! same {
    ($($type:ty),+) => {$(
        impl View<$type> for $type {
            fn view(of: $type) -> Self {
                of
            }
        }
    )+};
}

macro_rules! text {
    ($($type:ty),+) => {$(
        impl View<$type> for String {
            fn view(of: $type) -> Self {
                of.to_string()
            }
        }
    )+};
}

same!(String, bool, u32, f64, Value);
text!(AskId, FlowId, GrantId, LaunchId, ProviderId, RunId, SecretName, ToolId, WorldId);
text!(wharf_vocab::ToolState, wharf_vocab::WaitKind, wharf_vocab::ProviderState);
text!(wharf_vocab::ScheduleId, wharf_vocab::ScheduleState, wharf_vocab::FiringState);
text!(wharf_vocab::ReceiverId, wharf_vocab::NotificationId, wharf_vocab::RunStatus);
text!(wharf_vocab::NotifyOn, wharf_vocab::NotifyFormat, wharf_vocab::ReceiverState);
text!(wharf_vocab::NotificationState, wharf_vocab::NotifyInclude);
text!(wharf_vocab::TriggerId, wharf_vocab::TriggerState, wharf_vocab::HookProof);
text!(wharf_vocab::CatchUp, wharf_vocab::Overlap);
text!(wharf_vocab::AskOutcome, wharf_vocab::PurgeState);
text!(wharf_vocab::SandboxLevel, wharf_vocab::Isolation);
text!(wharf_vocab::Health, wharf_vocab::Verdict);
text!(wharf_vocab::McpEraChoice, wharf_vocab::McpSampling, wharf_vocab::McpRoots);

/// Every ask of this version names its caller.
impl View<Option<GrantId>> for String {
    fn view(of: Option<GrantId>) -> Self {
        of.map_or_else(String::new, Self::from)
    }
}

impl View<u64> for Int64 {
    fn view(of: u64) -> Self {
        Self(of)
    }
}

impl View<u16> for u32 {
    fn view(of: u16) -> Self {
        of.into()
    }
}

impl View<DateTime> for scalars::DateTime {
    fn view(of: DateTime) -> Self {
        Self(of.0)
    }
}

impl View<Object> for Value {
    fn view(of: Object) -> Self {
        Self::Object(of)
    }
}

/// Names of the owner's own choice, each with a value.
impl<T: Serialize> View<BTreeMap<String, T>> for Value {
    fn view(of: BTreeMap<String, T>) -> Self {
        serde_json::to_value(of).unwrap_or_default()
    }
}

impl<T, V: View<T>> View<Option<T>> for Option<V> {
    fn view(of: Option<T>) -> Self {
        of.map(V::view)
    }
}

impl<T, V: View<T>> View<Vec<T>> for Vec<V> {
    fn view(of: Vec<T>) -> Self {
        of.into_iter().map(V::view).collect()
    }
}

/// A type that shows a message of REST, field by field under the same names: `without` those that
/// are left out by intention, and `with` what is known besides the message.
macro_rules! view {
    ($(#[$meta:meta])* $name:ident of $message:ident {
        $($(#[$field_meta:meta])* $field:ident: $type:ty),+ $(,)?
    } $(without { $($left:ident),+ $(,)? })?) => {
        #[derive(Debug, async_graphql::SimpleObject)]
        $(#[$meta])*
        pub(crate) struct $name {
            $($(#[$field_meta])* pub(crate) $field: $type),+
        }

        impl $crate::types::view::View<wharf_wire::rest_v1::$message> for $name {
            fn view(of: wharf_wire::rest_v1::$message) -> Self {
                let wharf_wire::rest_v1::$message { $($field,)+ $($($left: _),+)? } = of;
                Self { $($field: $crate::types::view::View::view($field)),+ }
            }
        }
    };
    ($(#[$meta:meta])* $name:ident of $message:ident {
        $($(#[$field_meta:meta])* $field:ident: $type:ty),+ $(,)?
    } without { $($left:ident),+ } with $known:ident: $known_type:ty {
        $($(#[$more_meta:meta])* $more:ident: $more_type:ty = $value:expr),+ $(,)?
    }) => {
        #[derive(Debug, async_graphql::SimpleObject)]
        $(#[$meta])*
        pub(crate) struct $name {
            $($(#[$field_meta])* $field: $type,)+
            $($(#[$more_meta])* $more: $more_type),+
        }

        impl $crate::types::view::View<(wharf_wire::rest_v1::$message, $known_type)> for $name {
            fn view((of, $known): (wharf_wire::rest_v1::$message, $known_type)) -> Self {
                let wharf_wire::rest_v1::$message { $($field,)+ $($left: _),+ } = of;
                Self {
                    $($field: $crate::types::view::View::view($field),)+
                    $($more: $value),+
                }
            }
        }
    };
}

pub(crate) use view;
