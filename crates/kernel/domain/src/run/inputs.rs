//! A run's inputs, or what is known of them while only the store has them.

use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use wharf_vocab::limits::RUN_INPUTS_KEPT_BYTES_MAX;
use wharf_vocab::{Digest, Object};

use crate::memory_weight;

/// The inputs of a run under their names. A run that is written down keeps large ones in its
/// stream only: they are read back for each attempt, and for whoever wants to see them.
#[derive(Debug, Clone)]
pub enum Inputs {
    /// They are here.
    Here(Arc<Object>),
    /// Only the run's stream has them; to whoever looks here there are none.
    Away(UnloadedInputs),
}

/// What is known of inputs that are not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnloadedInputs {
    /// About how many bytes they take in memory.
    pub bytes: u64,
    /// Their digest.
    pub digest: Digest,
}

static NONE: LazyLock<Object> = LazyLock::new(Object::new);

impl Inputs {
    /// What is known of them, if they are not here.
    pub fn away(&self) -> Option<&UnloadedInputs> {
        match self {
            Self::Here(_) => None,
            Self::Away(away) => Some(away),
        }
    }

    /// About how many bytes they take in memory, or would if they were here.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Here(inputs) => memory_weight(inputs),
            Self::Away(away) => away.bytes,
        }
    }

    /// Their digest; the order of names does not matter.
    pub fn digest(&self) -> Digest {
        match self {
            Self::Here(inputs) => Digest::of_object(inputs),
            Self::Away(away) => away.digest.clone(),
        }
    }

    /// What is kept of them where only small ones stay; `None` if these do.
    pub(super) fn leave(&self) -> Option<Self> {
        let Self::Here(inputs) = self else { return None };
        let bytes = memory_weight(inputs);
        (bytes > RUN_INPUTS_KEPT_BYTES_MAX as u64)
            .then(|| Self::Away(UnloadedInputs { bytes, digest: Digest::of_object(inputs) }))
    }
}

impl Deref for Inputs {
    type Target = Object;

    fn deref(&self) -> &Object {
        match self {
            Self::Here(inputs) => inputs,
            Self::Away(_) => &NONE,
        }
    }
}

impl From<Object> for Inputs {
    fn from(inputs: Object) -> Self {
        Self::Here(Arc::new(inputs))
    }
}

/// Where they are makes them no other inputs.
impl PartialEq for Inputs {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Here(one), Self::Here(other)) => one == other,
            (one, other) => one.digest() == other.digest(),
        }
    }
}

impl PartialEq<Object> for Inputs {
    fn eq(&self, other: &Object) -> bool {
        matches!(self, Self::Here(inputs) if **inputs == *other)
    }
}

impl Serialize for Inputs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Here(inputs) => inputs.serialize(serializer),
            // They stand in the run's first entry, which nobody writes twice.
            Self::Away(_) => Err(ser::Error::custom("the inputs are not here")),
        }
    }
}

impl<'de> Deserialize<'de> for Inputs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Object::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn inputs(value: serde_json::Value) -> Inputs {
        match value {
            serde_json::Value::Object(object) => Inputs::from(object),
            _ => panic!("an object"),
        }
    }

    #[test]
    fn large_inputs_leave_and_are_known_by_size_and_digest() {
        let small = inputs(json!({"text": "a"}));
        assert!(small.leave().is_none());
        let large = inputs(json!({"text": "a".repeat(10_000), "n": 1}));
        let left = large.leave().expect("too large to stay");
        assert!(left.is_empty() && left.away().is_some_and(|away| away.bytes > 10_000));
        assert_eq!((left.digest(), left.bytes()), (large.digest(), large.bytes()));
        assert_eq!(left, large);
        assert_ne!(left, small);
        assert!(left.leave().is_none(), "they are gone already");
    }

    #[test]
    fn what_is_not_here_cannot_be_written_down() {
        let large = inputs(json!({"text": "a".repeat(10_000)}));
        let text = serde_json::to_string(&large).expect("written");
        assert_eq!(serde_json::from_str::<Inputs>(&text).expect("read"), large);
        serde_json::to_string(&large.leave().expect("too large")).expect_err("not here");
    }
}
