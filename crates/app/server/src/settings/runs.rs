//! `[runs]`: what open runs may take.

use serde::Deserialize;
use wharf_domain::provider::quantity;
use wharf_vocab::limits::{HELD_BYTES_MAX, HELD_BYTES_MIN};
use wharf_vocab::{Code, Fault};

/// What open runs may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Runs {
    /// In memory, all together.
    pub(crate) memory_bytes: u64,
}

/// The table as it stands in `wharf.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    memory: Option<String>,
}

impl File {
    pub(super) fn read(self) -> Result<Runs, Fault> {
        let Some(text) = self.memory else { return Ok(Runs { memory_bytes: HELD_BYTES_MAX }) };
        let given = quantity::bytes(&text).filter(|bytes| *bytes >= HELD_BYTES_MIN);
        let memory_bytes = given.ok_or_else(|| {
            let message = "The key runs.memory in wharf.toml cannot be used: it is a size such as \
                           256Mi, 16Mi at least.";
            Fault::new(Code::ConfigInvalid, message)
        })?;
        Ok(Runs { memory_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_open_runs_may_take_can_be_set_and_too_little_is_refused() {
        let read = |text: &str| toml::from_str::<File>(text).expect("TOML").read();
        assert_eq!(read("").expect("fits").memory_bytes, HELD_BYTES_MAX);
        assert_eq!(read("memory = \"1Gi\"").expect("fits").memory_bytes, 1 << 30);
        for wrong in ["15Mi", "much", "-1"] {
            let fault = read(&format!("memory = \"{wrong}\"")).expect_err("refused");
            assert!(fault.message.contains("runs.memory"), "{fault}");
        }
    }
}
