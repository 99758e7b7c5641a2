//! JSON in which no key stands twice, at any depth. Two readers of the same text must not see two
//! different values, and which of two equal keys counts is up to the reader.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use wharf_vocab::Object;

/// Reads the one value that the text consists of. An error of data is a key that stands twice, any
/// other means that the text is not JSON. Depth is bounded by the parser, size by whoever calls.
pub fn read(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = StrictJson.deserialize(&mut json)?;
    json.end()?;
    Ok(value)
}

struct StrictJson;

impl<'de> DeserializeSeed<'de> for StrictJson {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictJson {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(StrictJson)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Object::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(de::Error::custom("a key stands twice"));
            }
            let value = map.next_value_seed(StrictJson)?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_read_as_it_stands_unless_a_key_stands_twice() {
        let text = r#"{"a":[1,-2,3.5,null,true,"x"],"b":{"a":{}}}"#;
        let expected: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(read(text.as_bytes()).expect("JSON"), expected);
        for twice in [r#"{"a":1,"a":1}"#, r#"{"b":[{"a":1,"\u0061":2}]}"#] {
            assert!(read(twice.as_bytes()).expect_err("twice").is_data(), "{twice}");
        }
        for bad in ["{} {}", "", "\u{feff}{}"] {
            assert!(!read(bad.as_bytes()).expect_err("no JSON").is_data(), "{bad}");
        }
        assert!(read("[".repeat(100_000).as_bytes()).is_err(), "deep");
    }
}
