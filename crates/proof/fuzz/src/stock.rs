//! Valid messages, and what can be done to them.
//!
//! Most are spoilt as the trees they are, so that what comes out can be read and has to be thought
//! about; some as bytes.

use std::path::Path;

use serde_json::{Number, Value};

use crate::Dice;

/// Values that nobody expects.
const ODD: &[&str] = &[
    "null",
    "true",
    "-1",
    "0",
    "1.5",
    "1e300",
    "18446744073709551615",
    "-9223372036854775808",
    "\"\"",
    "\"\\u0000\"",
    "\"\\u202e\\u200b\"",
    "\"../../etc/passwd\"",
    "[]",
    "{}",
    "[[[[[[[[[[]]]]]]]]]]",
    "{\"a\":{\"a\":{\"a\":{\"a\":{}}}}}",
];

/// Pieces that bytes are spoilt with.
const PIECES: &[&str] = &[
    "null",
    "1e999",
    "18446744073709551616",
    "\\ud800",
    "\u{feff}",
    "{\"",
    "}}",
    "[[[[",
    ",",
    ":",
    "\"",
    "\0",
    "\r\n",
    "\r\n\r\n",
];

/// Most often a list grows to this.
const LIST_MAX: usize = 64;
/// A text that is made long has this many characters.
const LONG_TEXT: usize = 5_000;

/// Messages of one wire, and the words that matter on it.
#[derive(Debug, Default)]
pub struct Stock {
    trees: Vec<Value>,
    texts: Vec<Vec<u8>>,
    words: Vec<String>,
    keys: Vec<String>,
}

impl Stock {
    /// These messages; `words` are names that the other side knows, such as ids of open calls.
    #[must_use]
    pub fn new(trees: Vec<Value>, words: &[&str]) -> Self {
        let mut stock = Self { trees, ..Self::default() };
        stock.words = words.iter().map(|&word| word.to_owned()).collect();
        let trees = std::mem::take(&mut stock.trees);
        trees.iter().for_each(|tree| stock.learn(tree));
        stock.trees = trees;
        stock.keys.sort();
        stock.keys.dedup();
        stock
    }

    /// The JSON files of a folder below the wires' examples whose names begin so.
    ///
    /// # Panics
    /// If there are none, or one is no JSON.
    #[must_use]
    pub fn of_wire(folder: &str, prefixes: &[&str], words: &[&str]) -> Self {
        let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel/wire/testdata");
        let mut paths: Vec<_> = std::fs::read_dir(base.join(folder))
            .expect("the examples are there")
            .map(|entry| entry.expect("readable").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .filter(|path| {
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
                name.is_some_and(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
            })
            .collect();
        paths.sort();
        let read = |path| serde_json::from_str(&std::fs::read_to_string(path).expect("readable"));
        let trees: Vec<Value> = paths.iter().map(|path| read(path).expect("JSON")).collect();
        assert!(!trees.is_empty(), "there are no examples in {folder}");
        Self::new(trees, words)
    }

    /// Messages that are no JSON.
    #[must_use]
    pub fn of_texts(texts: &[&str]) -> Self {
        let texts = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
        Self { texts, ..Self::default() }
    }

    /// The same messages with another name in the place of one.
    #[must_use]
    pub fn with_name(mut self, name: &str, instead: &str) -> Self {
        for tree in &mut self.trees {
            let text = tree.to_string().replace(name, instead);
            *tree = serde_json::from_str(&text).expect("still JSON");
        }
        self
    }

    fn learn(&mut self, tree: &Value) {
        match tree {
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.keys.push(key.clone());
                    self.learn(value);
                }
            }
            Value::Array(list) => list.iter().for_each(|value| self.learn(value)),
            _ => {}
        }
    }

    /// A message with something wrong with it, mostly.
    pub fn spoil(&self, dice: &mut Dice) -> Vec<u8> {
        if self.trees.is_empty() || (!self.texts.is_empty() && dice.one_in(2)) {
            let mut bytes = dice.pick(&self.texts).clone();
            for _ in 0..dice.below(4) {
                self.spoil_bytes(dice, &mut bytes);
            }
            return bytes;
        }
        let mut tree = dice.pick(&self.trees).clone();
        if dice.one_in(8) {
            let mut bytes = tree.to_string().into_bytes();
            for _ in 0..=dice.below(3) {
                self.spoil_bytes(dice, &mut bytes);
            }
            return bytes;
        }
        // Names of what is open are tried more often than everything else, or little would ever
        // be meant for it.
        if dice.one_in(2) {
            self.rename_one(dice, &mut tree);
        }
        for _ in 0..dice.below(3) {
            let mut at = dice.below(size(&tree));
            self.change(dice, &mut tree, &mut at);
        }
        tree.to_string().into_bytes()
    }

    fn spoil_bytes(&self, dice: &mut Dice, bytes: &mut Vec<u8>) {
        let at = dice.below(bytes.len() + 1);
        match dice.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => bytes.insert(at, u8::try_from(dice.below(256)).unwrap_or(0)),
            3 => drop(bytes.splice(at..at, dice.pick::<&str>(PIECES).bytes())),
            4 => bytes.truncate(at),
            5 => {
                let other = match self.texts.is_empty() {
                    true => dice.pick(&self.trees).to_string().into_bytes(),
                    false => dice.pick(&self.texts).clone(),
                };
                bytes.truncate(at);
                bytes.extend_from_slice(&other[dice.below(other.len())..]);
            }
            _ => {
                let end = (at + dice.below(32)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, piece));
            }
        }
    }

    /// Puts a known word in the place of a known word.
    fn rename_one(&self, dice: &mut Dice, tree: &mut Value) {
        match tree {
            Value::String(text) if self.words.contains(text) => {
                text.clone_from(dice.pick(&self.words));
            }
            Value::Object(fields) => {
                fields.values_mut().for_each(|value| self.rename_one(dice, value));
            }
            Value::Array(list) => list.iter_mut().for_each(|value| self.rename_one(dice, value)),
            _ => {}
        }
    }

    /// Changes the node that is `at` steps away, counted from the top.
    fn change(&self, dice: &mut Dice, tree: &mut Value, at: &mut usize) {
        if *at == 0 {
            *at = usize::MAX;
            return self.change_here(dice, tree);
        }
        *at -= 1;
        match tree {
            Value::Object(fields) => {
                for value in fields.values_mut() {
                    self.change_unless_done(dice, value, at);
                }
            }
            Value::Array(list) => {
                for value in list {
                    self.change_unless_done(dice, value, at);
                }
            }
            _ => {}
        }
    }

    fn change_unless_done(&self, dice: &mut Dice, tree: &mut Value, at: &mut usize) {
        // A tree has fewer nodes than that, so it says that the change was made.
        if *at < usize::MAX / 2 {
            self.change(dice, tree, at);
        }
    }

    fn change_here(&self, dice: &mut Dice, here: &mut Value) {
        match here {
            Value::Object(fields) if dice.below(4) > 0 => {
                let names: Vec<String> = fields.keys().cloned().collect();
                let name = if names.is_empty() { String::new() } else { dice.pick(&names).clone() };
                match dice.below(3) {
                    0 => drop(fields.remove(&name)),
                    1 => drop(fields.insert(self.key(dice), self.any(dice))),
                    _ => {
                        let value = fields.remove(&name).unwrap_or(Value::Null);
                        fields.insert(self.key(dice), value);
                    }
                }
            }
            Value::Array(list) if dice.below(4) > 0 => match dice.below(3) {
                0 => drop(list.pop()),
                1 => list.push(self.any(dice)),
                _ => {
                    let first = list.first().cloned().unwrap_or_else(|| self.any(dice));
                    list.resize(dice.below(LIST_MAX), first);
                }
            },
            Value::String(text) if dice.below(4) > 0 => match dice.below(4) {
                0 if !self.words.is_empty() => text.clone_from(dice.pick(&self.words)),
                1 => *text = dice.pick(&self.keys).clone(),
                2 => *text = text.repeat(LONG_TEXT / text.len().max(1)),
                _ => text.push_str(dice.pick::<&str>(&["\u{0}", "\u{202e}", " ", "/", "é", "\n"])),
            },
            Value::Number(number) if dice.below(4) > 0 => {
                let near = number.as_u64().unwrap_or(0).wrapping_add(dice.roll() % 5);
                *number = Number::from(near.wrapping_sub(2));
            }
            here => *here = self.any(dice),
        }
    }

    fn key(&self, dice: &mut Dice) -> String {
        dice.pick(&self.keys).clone()
    }

    /// An odd value, or a piece of another message.
    fn any(&self, dice: &mut Dice) -> Value {
        if dice.one_in(2) {
            return serde_json::from_str(dice.pick::<&str>(ODD)).unwrap_or(Value::Null);
        }
        let other = dice.pick(&self.trees);
        let fields = other.as_object().filter(|fields| !fields.is_empty());
        let values: Vec<&Value> = fields.into_iter().flat_map(|fields| fields.values()).collect();
        if values.is_empty() { other.clone() } else { (*dice.pick(&values)).clone() }
    }
}

/// How many nodes a tree has.
fn size(tree: &Value) -> usize {
    1 + match tree {
        Value::Object(fields) => fields.values().map(size).sum(),
        Value::Array(list) => list.iter().map(size).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_same_seed_spoils_the_same_way_and_most_can_still_be_read() {
        let stock =
            Stock::new(vec![json!({"id": "a", "list": [1, 2], "more": {"x": null}})], &["a"]);
        let made = |seed| {
            let mut dice = Dice::new(seed);
            (0..1_000).map(|_| stock.spoil(&mut dice)).collect::<Vec<_>>()
        };
        let first = made(7);
        assert_eq!(first, made(7));
        assert_ne!(first, made(8));
        let readable = first.iter().filter(|it| serde_json::from_slice::<Value>(it).is_ok());
        assert!((800..1_000).contains(&readable.count()));
        let whole = stock.trees[0].to_string().into_bytes();
        let untouched = first.iter().filter(|it| **it == whole).count();
        assert!((100..600).contains(&untouched), "{untouched}");
    }
}
