//! The fields of a manifest, whatever it is written in: each read as what it must be, with errors
//! that name it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};

use serde_json::Value;
use wharf_domain::permission::Permission;
use wharf_domain::provider::{Rate, Usage};
use wharf_vocab::{Code, Fault, Isolation, Object, quantity, shown};

/// Most bytes of a manifest, or of a file beside it.
const FILE_BYTES_MAX: u64 = 256_000;
/// Most items of a list.
pub const LIST_ITEMS_MAX: usize = 500;
/// A name in which more than every third letter differs is another name.
const LETTERS_PER_SLIP: usize = 3;
/// Letters of a name that are compared.
const LETTERS_COMPARED: usize = 100;

/// Reads all of a file that was opened, if it is not too large. What is wrong is the end of a
/// sentence; `not_plain` is said of what is no plain file.
pub fn read_bounded(opened: io::Result<File>, not_plain: &str) -> Result<Vec<u8>, String> {
    let file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => not_plain.to_owned(),
        _ => "is not there or cannot be read".to_owned(),
    })?;
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|_| "cannot be read".to_owned())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("is larger than {FILE_BYTES_MAX} bytes"));
    }
    Ok(bytes)
}

/// Reads a manifest that is written in TOML.
pub fn toml_table(bytes: &[u8], code: Code) -> Result<Object, Fault> {
    let invalid = |message: String| Fault::new(code, message);
    let text = std::str::from_utf8(bytes)
        .map_err(|_| invalid("The manifest is not UTF-8 text.".to_owned()))?;
    let table = text.parse::<toml::Table>().map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1;
        let why: String =
            error.message().chars().map(|c| if c == '\n' { ';' } else { c }).collect();
        invalid(format!("The manifest is not TOML (line {line}): {}.", why.trim_end_matches('.')))
    })?;
    Ok(table.into_iter().map(|(key, value)| (key, to_json(value))).collect())
}

/// The same in JSON. What JSON does not have, dates and numbers beyond all others, becomes null,
/// which TOML does not have.
fn to_json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(flag) => flag.into(),
        toml::Value::Datetime(_) => Value::Null,
        toml::Value::Array(items) => items.into_iter().map(to_json).collect(),
        toml::Value::Table(table) => {
            table.into_iter().map(|(key, value)| (key, to_json(value))).collect()
        }
    }
}

/// The fields of an object, and where it stands.
#[derive(Clone, Copy)]
pub struct ManifestFields<'a> {
    object: &'a Object,
    /// What stands before a field's name in an error.
    path: &'static str,
    /// The code of its errors.
    invalid: Code,
}

impl<'a> ManifestFields<'a> {
    /// The fields at the top.
    #[must_use]
    pub fn new(object: &'a Object, invalid: Code) -> Self {
        Self { object, path: "", invalid }
    }

    /// The fields of an object that is called `what`; its name in errors ends with a dot.
    pub fn within(&self, path: &'static str, what: &str) -> Result<Option<Self>, Fault> {
        let name = path.trim_end_matches('.');
        match self.get(name) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(Self { object, path, ..*self })),
            Some(_) => Err(self.wrong(name, &format!("it must be {what}"))),
        }
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name)
    }

    /// Refuses every field but these.
    pub fn only(&self, known: &[&str]) -> Result<(), Fault> {
        let Some(unknown) = self.object.keys().find(|key| !known.contains(&key.as_str())) else {
            return Ok(());
        };
        let begin: String = unknown.chars().take(LETTERS_COMPARED).collect();
        let nearest = known.iter().map(|name| (strsim::levenshtein(&begin, name), *name)).min();
        let hint = match nearest {
            Some((slips, name)) if slips * LETTERS_PER_SLIP <= name.len() => {
                format!("; did you mean {name}?")
            }
            _ => String::new(),
        };
        Err(self.wrong(&shown(unknown, 100), &format!("there is no such field{hint}")))
    }

    /// Refuses each of these.
    pub fn none_of(&self, names: &[&str], why: &str) -> Result<(), Fault> {
        let found = names.iter().find(|name| self.object.contains_key(**name));
        found.map_or(Ok(()), |name| Err(self.wrong(name, why)))
    }

    /// Text that must be there.
    pub fn text(&self, name: &str, bytes_max: usize) -> Result<String, Fault> {
        let missing = || format!("The manifest's field {}{name} is missing.", self.path);
        let text = self.optional_text(name, bytes_max)?;
        text.ok_or_else(|| Fault::new(self.invalid, missing()))
    }

    pub fn optional_text(&self, name: &str, bytes_max: usize) -> Result<Option<String>, Fault> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if (1..=bytes_max).contains(&text.len()) => {
                Ok(Some(text.clone()))
            }
            Some(Value::String(_)) => {
                Err(self.wrong(name, &format!("it must have 1 to {bytes_max} bytes")))
            }
            Some(_) => Err(self.wrong(name, "it must be text")),
        }
    }

    /// A list of text.
    pub fn texts(&self, name: &str, bytes_max: usize) -> Result<Option<Vec<String>>, Fault> {
        let items = match self.get(name) {
            None => return Ok(None),
            Some(Value::Array(items)) if items.len() <= LIST_ITEMS_MAX => items,
            Some(Value::Array(_)) => {
                return Err(self.wrong(name, &format!("it may have {LIST_ITEMS_MAX} items")));
            }
            Some(_) => return Err(self.wrong(name, "it must be a list of text")),
        };
        let one = |(at, item): (usize, &Value)| match item {
            Value::String(text) if text.len() <= bytes_max => Ok(text.clone()),
            _ => Err(self.wrong(
                &format!("{name}[{at}]"),
                &format!("it must be text of at most {bytes_max} bytes"),
            )),
        };
        items.iter().enumerate().map(one).collect::<Result<_, _>>().map(Some)
    }

    pub fn flag(&self, name: &str) -> Result<Option<bool>, Fault> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.wrong(name, "it must be true or false")),
        }
    }

    /// A whole number that is not below `least`, which `expected` says.
    pub fn whole(&self, name: &str, least: u64, expected: &str) -> Result<Option<u64>, Fault> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = value.as_u64().filter(|number| *number >= least);
        number.map(Some).ok_or_else(|| self.wrong(name, &format!("it must be {expected}")))
    }

    /// A word of a few, or a quantity as text.
    pub fn word<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let read = value.as_str().and_then(read);
        read.map(Some).ok_or_else(|| self.wrong(name, &format!("it must be {expected}")))
    }

    /// The names and texts of an object; what is wrong with an item is told by `check`, as the end
    /// of a sentence that begins with the item.
    pub fn map<T>(
        &self,
        name: &str,
        bytes_max: usize,
        check: impl Fn(&str, &str) -> Result<T, String>,
    ) -> Result<BTreeMap<String, T>, Fault> {
        let items = match self.get(name) {
            None => return Ok(BTreeMap::new()),
            Some(Value::Object(items)) if items.len() <= LIST_ITEMS_MAX => items,
            Some(Value::Object(_)) => {
                return Err(self.wrong(name, &format!("it may have {LIST_ITEMS_MAX} items")));
            }
            Some(_) => return Err(self.wrong(name, "it must be a table of text")),
        };
        let one = |(key, value): (&String, &Value)| {
            let field = || format!("{name}.{}", shown(key, 100));
            match value {
                Value::String(text) if key.len().max(text.len()) <= bytes_max => check(key, text)
                    .map(|read| (key.clone(), read))
                    .map_err(|why| self.wrong(&field(), &why)),
                _ => {
                    Err(self
                        .wrong(&field(), &format!("it must be text of at most {bytes_max} bytes")))
                }
            }
        };
        items.iter().map(one).collect()
    }

    /// Which runs may share a process.
    pub fn isolation(&self) -> Result<Option<Isolation>, Fault> {
        self.word("isolation", "shared, world or run", Isolation::parse)
    }

    /// What a process may use up; `count` says what a number of things must be.
    pub fn usage(&self, count: &str) -> Result<Usage, Fault> {
        let size = |name| self.word(name, "a size such as 256Mi", positive_bytes);
        Ok(Usage {
            memory_bytes: size("memory")?,
            disk_bytes: size("disk")?,
            cpu_ms: self.word("cpu_time", "a time such as 60s", positive_ms)?,
            cpu_millicores: self.word("cpu", "a share such as 200m", millicores)?,
            processes: self.whole("processes", 1, count)?,
            open_files: self.whole("open_files", 1, count)?,
        })
    }

    /// The permissions that are asked for, if the field is there.
    pub fn permissions(&self, bytes_max: usize) -> Result<Option<Vec<String>>, Fault> {
        let permissions = self.texts("permissions", bytes_max)?;
        for (at, text) in permissions.iter().flatten().enumerate() {
            Permission::parse(text).map_err(|why| {
                let shown = shown(text, usize::MAX);
                self.wrong(&format!("permissions[{at}]"), &format!("{shown} {why}"))
            })?;
        }
        Ok(permissions)
    }

    /// Says what is wrong with a field.
    #[must_use]
    pub fn wrong(&self, name: &str, why: &str) -> Fault {
        let field = format!("{}{name}", self.path);
        let end = if why.ends_with('?') { "" } else { "." };
        let message = format!("The manifest's field {field} cannot be used: {why}{end}");
        Fault::new(self.invalid, message).with("field", field)
    }
}

/// A time in milliseconds, more than none.
pub fn positive_ms(text: &str) -> Option<u64> {
    quantity::duration_ms(text).filter(|ms| *ms > 0)
}

/// A number of bytes, more than none.
fn positive_bytes(text: &str) -> Option<u64> {
    quantity::bytes(text).filter(|bytes| *bytes > 0)
}

/// A share of processors in thousandths of one, more than none: `200m`, `2`.
fn millicores(text: &str) -> Option<u64> {
    let (number, factor) = text.strip_suffix('m').map_or((text, 1_000), |number| (number, 1));
    let plain = number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse::<u64>().ok().filter(|number| plain && *number > 0)?;
    number.checked_mul(factor)
}

/// So many in so much time: `60/minute`.
pub fn rate(text: &str) -> Option<Rate> {
    quantity::rate(text).map(|(count, per_ms)| Rate { count, per_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_people_write_them() {
        assert_eq!(positive_ms("15s"), Some(15_000));
        assert_eq!(positive_ms("250ms"), Some(250));
        assert_eq!(positive_bytes("256Mi"), Some(256 << 20));
        assert_eq!(positive_bytes("1000"), Some(1_000));
        assert_eq!(millicores("200m"), Some(200));
        assert_eq!(millicores("2"), Some(2_000));
        assert_eq!(rate("60/minute"), Some(Rate { count: 60, per_ms: 60_000 }));
        for bad in ["", "s", "15", "-1s", "+1s", "0s", "0.1ms", "99999999999999999999h", "1 s"] {
            assert_eq!(positive_ms(bad), None, "{bad}");
        }
        for bad in ["", "60", "/minute", "60/fortnight", "0/minute", "9999999999/second"] {
            assert_eq!(rate(bad), None, "{bad}");
        }
    }
}
