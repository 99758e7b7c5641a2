//! Names of the steps of durable code in one call: the same code gets the same ones each time.

use std::collections::HashMap;

use parking_lot::Mutex;
use wharf_vocab::{Code, Fault, StepName};

/// How often each name was used in a call, and which are under way.
#[derive(Debug, Default)]
pub struct StepNames(Mutex<HashMap<String, NameUse>>);

#[derive(Debug, Default)]
struct NameUse {
    times: u32,
    under_way: bool,
}

impl StepNames {
    /// The next step of this name, or the first of so many. What goes on at the same time has no
    /// order, so that a name that is under way cannot be used again.
    pub(crate) fn begin(&self, name: String, count: u32) -> Result<StepName, Fault> {
        let mut names = self.0.lock();
        let used = names.entry(name.clone()).or_default();
        if used.under_way {
            let message = format!(
                "The step `{name}` is under way: give this one another name, or use `each`."
            );
            return Err(Fault::new(Code::StepInUse, message));
        }
        let step = StepName::new(name, used.times + 1)
            .map_err(|error| Fault::new(Code::RequestInvalid, format!("Not so: {error}.")))?;
        let times = used.times.checked_add(count).ok_or_else(|| {
            Fault::new(Code::RequestInvalid, "There are too many steps of one name.")
        })?;
        *used = NameUse { times, under_way: true };
        Ok(step)
    }

    /// The steps of this name are over.
    pub(crate) fn end(&self, name: &str) {
        if let Some(used) = self.0.lock().get_mut(name) {
            used.under_way = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f024_names_are_counted_and_used_one_at_a_time() {
        let names = StepNames::default();
        let begin = |name: &str| names.begin(name.to_owned(), 1);
        assert_eq!(begin("fetch").expect("free").n(), 1);
        let fault = begin("fetch").expect_err("under way");
        assert!(fault.is(Code::StepInUse) && fault.message.contains("`fetch`"), "{fault}");
        assert_eq!(begin("send").expect("another").n(), 1);
        names.end("fetch");
        assert_eq!(begin("fetch").expect("free again").n(), 2);
        names.end("fetch");
        assert_eq!(names.begin("fetch".to_owned(), 40).expect("several").n(), 3);
        names.end("fetch");
        assert_eq!(names.begin("fetch".to_owned(), 0).expect("none").n(), 43);
        names.end("fetch");
        assert_eq!(begin("fetch").expect("after them").n(), 43);
        assert!(begin("").expect_err("no name").is(Code::RequestInvalid));
    }
}
