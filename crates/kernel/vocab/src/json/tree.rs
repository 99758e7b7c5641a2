//! JSON as it was written, on its way into a message.
//!
//! The tree is a deserializer of its own, so that what is wrong is a value ([`Misfit`]) and not a
//! text to take apart: each method knows what was wanted, and repeated fields are still there.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{
    Deserialize, Deserializer, Error, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde_json::{Number, Value};

/// What is wrong with a message. No variant holds a value that was sent.
#[derive(Debug)]
pub(super) enum Misfit {
    /// A field that must be there is not.
    Missing(&'static str),
    /// A field is there more than once.
    Twice(&'static str),
    /// A field is there that the message does not have.
    Unknown { name: String, known: &'static [&'static str] },
    /// Something else was wanted, such as "a list".
    Wanted(String),
    /// A type of ours refused it, in its own words, which never repeat a value.
    Refused(String),
}

impl Error for Misfit {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self::Refused(why.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::Wanted(wanted.to_string())
    }

    fn invalid_value(_: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::Wanted(wanted.to_string())
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Self {
        one_of(known)
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        Self::Unknown { name: name.to_owned(), known }
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Missing(field)
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::Twice(field)
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Misfit {}

fn wanted<T>(what: &str) -> Result<T, Misfit> {
    Err(Misfit::Wanted(what.to_owned()))
}

fn one_of(words: &[&str]) -> Misfit {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    Misfit::Wanted(match quoted.as_slice() {
        [one, other] => format!("{one} or {other}"),
        [one] => one.clone(),
        many => format!("one of {}", many.join(", ")),
    })
}

/// One value.
#[derive(Debug)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(flag),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(fields) => Self::Object(
                fields.into_iter().map(|(name, value)| (name, Self::from(value))).collect(),
            ),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Node, E> {
        Ok(Node::Bool(flag))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Number(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        // What no JSON number can say is null, as serde_json has it.
        Ok(Number::from_f64(number).map_or(Node::Null, Node::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(Node::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = from.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = from.next_entry()? {
            fields.push(field);
        }
        Ok(Node::Object(fields))
    }
}

impl IntoDeserializer<'_, Misfit> for Node {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! whole_numbers {
    ($($method:ident, $type:ty, $as:ident, $visit:ident, $wanted:expr;)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
            match &self {
                Self::Number(number) => match number.$as() {
                    Some(number) if <$type>::try_from(number).is_ok() => visitor.$visit(number),
                    _ => wanted(&$wanted),
                },
                _ => wanted(&$wanted),
            }
        }
    )+};
}

macro_rules! same {
    ($($method:ident as $as:ident;)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
            self.$as(visitor)
        }
    )+};
}

fn up_to(most: impl fmt::Display) -> String {
    format!("a whole number from 0 to {most}")
}

impl<'de> Deserializer<'de> for Node {
    type Error = Misfit;

    whole_numbers! {
        deserialize_u8, u8, as_u64, visit_u64, up_to(u8::MAX);
        deserialize_u16, u16, as_u64, visit_u64, up_to(u16::MAX);
        deserialize_u32, u32, as_u64, visit_u64, up_to(u32::MAX);
        deserialize_u64, u64, as_u64, visit_u64, up_to(u64::MAX);
        deserialize_i8, i8, as_i64, visit_i64, "a whole number";
        deserialize_i16, i16, as_i64, visit_i64, "a whole number";
        deserialize_i32, i32, as_i64, visit_i64, "a whole number";
        deserialize_i64, i64, as_i64, visit_i64, "a whole number";
    }

    same! {
        deserialize_f32 as deserialize_f64;
        deserialize_char as deserialize_string;
        deserialize_str as deserialize_string;
        deserialize_identifier as deserialize_string;
        deserialize_bytes as deserialize_any;
        deserialize_byte_buf as deserialize_any;
        deserialize_ignored_any as deserialize_any;
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self {
            Self::Null => visitor.visit_unit(),
            Self::Bool(flag) => visitor.visit_bool(flag),
            Self::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), ..) => visitor.visit_u64(number),
                (None, Some(number), _) => visitor.visit_i64(number),
                (None, None, number) => visitor.visit_f64(number.unwrap_or_default()),
            },
            Self::Text(text) => visitor.visit_string(text),
            Self::List(_) => self.deserialize_seq(visitor),
            Self::Object(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self {
            Self::Bool(flag) => visitor.visit_bool(flag),
            _ => wanted("true or false"),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self {
            Self::Number(number) => visitor.visit_f64(number.as_f64().unwrap_or_default()),
            _ => wanted("a number"),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self {
            Self::Text(text) => visitor.visit_string(text),
            _ => wanted("text"),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self {
            Self::Null => visitor.visit_none(),
            some => visitor.visit_some(some),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self {
            Self::Null => visitor.visit_unit(),
            _ => wanted("null"),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let Self::List(items) = self else { return wanted("a list") };
        let mut items = SeqDeserializer::new(items.into_iter());
        let read = visitor.visit_seq(&mut items)?;
        items.end()?;
        Ok(read)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let Self::Object(fields) = self else { return wanted("a JSON object") };
        let mut fields = MapDeserializer::new(fields.into_iter());
        let read = visitor.visit_map(&mut fields)?;
        fields.end()?;
        Ok(read)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match self {
            Self::Text(word) => visitor.visit_enum(word.into_deserializer()),
            Self::Object(fields) if fields.len() == 1 => {
                let fields = MapDeserializer::new(fields.into_iter());
                visitor.visit_enum(MapAccessDeserializer::new(fields))
            }
            _ => Err(one_of(variants)),
        }
    }
}
