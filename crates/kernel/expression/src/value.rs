//! Values while an expression is evaluated: borrowed from JSON as long as nothing is made of them.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;
use wharf_vocab::{DateTime, Object, Timestamp};

use crate::EvaluateError;
use crate::evaluate::{BoundName, NameLevel};
use crate::fault;

/// A value.
#[derive(Debug, Clone)]
pub(crate) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(TextValue<'a>),
    List(List<'a>),
    Map(Map<'a>),
    /// A moment in milliseconds since 1970.
    Moment(i64),
    /// A length of time in milliseconds.
    Span(i64),
}

#[derive(Debug, Clone)]
pub(crate) enum TextValue<'a> {
    Json(&'a str),
    Made(Rc<str>),
}

#[derive(Debug, Clone)]
pub(crate) enum List<'a> {
    Json(&'a [Value]),
    Made(Rc<Vec<Val<'a>>>),
}

#[derive(Debug, Clone)]
pub(crate) enum Map<'a> {
    Json(&'a Object),
    /// Names of the scope.
    Names(&'a NameLevel<'a>),
    Made(Rc<BTreeMap<String, Val<'a>>>),
}

impl TextValue<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Json(text) => text,
            Self::Made(text) => text,
        }
    }
}

impl<'a> List<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json(items) => items.len(),
            Self::Made(items) => items.len(),
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<Val<'a>> {
        match self {
            Self::Json(items) => items.get(at).map(Val::of),
            Self::Made(items) => items.get(at).cloned(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Val<'a>> + use<'a> {
        let list = self.clone();
        (0..self.len()).filter_map(move |at| list.get(at))
    }
}

impl<'a> Map<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json(object) => object.len(),
            Self::Names(names) => names.len(),
            Self::Made(map) => map.len(),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Val<'a>> {
        match self {
            Self::Json(object) => object.get(key).map(Val::of),
            Self::Names(names) => names.get(key).map(Val::named),
            Self::Made(map) => map.get(key).cloned(),
        }
    }

    /// The keys in their order.
    pub(crate) fn keys(&self) -> Vec<String> {
        match self {
            Self::Json(object) => {
                let mut keys: Vec<String> = object.keys().cloned().collect();
                // The order is part of what an expression gives, whatever kind of map JSON has.
                keys.sort_unstable();
                keys
            }
            Self::Names(names) => names.keys().cloned().collect(),
            Self::Made(map) => map.keys().cloned().collect(),
        }
    }
}

impl<'a> Val<'a> {
    pub(crate) fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(truth) => Self::Bool(*truth),
            Value::Number(number) => match number.as_i64() {
                Some(whole) => Self::Int(whole),
                None => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Self::Text(TextValue::Json(text)),
            Value::Array(items) => Self::List(List::Json(items)),
            Value::Object(object) => Self::Map(Map::Json(object)),
        }
    }

    pub(crate) fn named(named: &'a BoundName<'a>) -> Self {
        match named {
            BoundName::Value(value) => Self::of(value),
            BoundName::Names(names) => Self::Map(Map::Names(names)),
        }
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::Text(TextValue::Made(text.into()))
    }

    pub(crate) fn list(items: Vec<Self>) -> Self {
        Self::List(List::Made(Rc::new(items)))
    }

    /// What kind of value it is, in a word.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a truth value",
            Self::Int(_) => "a whole number",
            Self::Double(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "an object",
            Self::Moment(_) => "a moment",
            Self::Span(_) => "a length of time",
        }
    }

    /// How much of `left` bytes it takes as JSON; an error where it takes more.
    pub(crate) fn into_json(self, left: &mut usize) -> Result<Value, EvaluateError> {
        let take = |left: &mut usize, bytes: usize| match left.checked_sub(bytes) {
            Some(rest) => {
                *left = rest;
                Ok(())
            }
            None => Err(EvaluateError::Size(0)),
        };
        match self {
            Self::Null => take(left, 4).map(|()| Value::Null),
            Self::Bool(truth) => take(left, 5).map(|()| Value::Bool(truth)),
            Self::Int(whole) => take(left, 8).map(|()| Value::from(whole)),
            Self::Double(number) => {
                take(left, 8)?;
                match serde_json::Number::from_f64(number) {
                    Some(number) => Ok(Value::Number(number)),
                    None => fault("the result is not a finite number"),
                }
            }
            Self::Text(text) => {
                take(left, text.as_str().len() + 2)?;
                Ok(Value::String(text.as_str().to_owned()))
            }
            Self::List(list) => {
                take(left, 2)?;
                let mut items = Vec::new();
                for item in list.iter() {
                    take(left, 1)?;
                    items.push(item.into_json(left)?);
                }
                Ok(Value::Array(items))
            }
            Self::Map(map) => {
                take(left, 2)?;
                let mut object = Object::new();
                for key in map.keys() {
                    take(left, key.len() + 4)?;
                    if let Some(value) = map.get(&key) {
                        object.insert(key, value.into_json(left)?);
                    }
                }
                Ok(Value::Object(object))
            }
            Self::Moment(ms) => {
                take(left, 26)?;
                moment_text(ms).map(Value::String)
            }
            Self::Span(ms) => take(left, 16).map(|()| Value::String(span_text(ms))),
        }
    }
}

/// A moment as RFC 3339 writes it.
pub(crate) fn moment_text(ms: i64) -> Result<String, EvaluateError> {
    match u64::try_from(ms) {
        Ok(ms) => Ok(DateTime(Timestamp(ms)).to_string()),
        Err(_) => fault("a moment before 1970 cannot be written"),
    }
}

/// A length of time in seconds, as `1.5s`.
pub(crate) fn span_text(ms: i64) -> String {
    let (sign, ms) = if ms < 0 { ("-", ms.unsigned_abs()) } else { ("", ms.unsigned_abs()) };
    match ms % 1_000 {
        0 => format!("{sign}{}s", ms / 1_000),
        rest => format!("{sign}{}.{rest:03}s", ms / 1_000),
    }
}

/// Whether two values are the same; `work` is called for every pair that is looked at.
pub(crate) fn is_same(
    one: &Val<'_>,
    other: &Val<'_>,
    work: &mut dyn FnMut(u64) -> Result<(), EvaluateError>,
) -> Result<bool, EvaluateError> {
    work(1)?;
    Ok(match (one, other) {
        (Val::Null, Val::Null) => true,
        (Val::Bool(one), Val::Bool(other)) => one == other,
        (Val::Text(one), Val::Text(other)) => {
            work(one.as_str().len() as u64 / 64)?;
            one.as_str() == other.as_str()
        }
        (Val::List(one), Val::List(other)) => {
            if one.len() != other.len() {
                return Ok(false);
            }
            for (one, other) in one.iter().zip(other.iter()) {
                if !is_same(&one, &other, work)? {
                    return Ok(false);
                }
            }
            true
        }
        (Val::Map(one), Val::Map(other)) => {
            if one.len() != other.len() {
                return Ok(false);
            }
            work(one.len() as u64)?;
            for key in one.keys() {
                let (Some(one), Some(other)) = (one.get(&key), other.get(&key)) else {
                    return Ok(false);
                };
                if !is_same(&one, &other, work)? {
                    return Ok(false);
                }
            }
            true
        }
        _ => order(one, other) == Some(Ordering::Equal),
    })
}

/// How two values of one kind are ordered.
pub(crate) fn order(one: &Val<'_>, other: &Val<'_>) -> Option<Ordering> {
    match (one, other) {
        (Val::Int(one), Val::Int(other))
        | (Val::Moment(one), Val::Moment(other))
        | (Val::Span(one), Val::Span(other)) => Some(one.cmp(other)),
        (Val::Double(one), Val::Double(other)) => one.partial_cmp(other),
        (Val::Int(one), Val::Double(other)) => order_mixed(*one, *other),
        (Val::Double(one), Val::Int(other)) => order_mixed(*other, *one).map(Ordering::reverse),
        (Val::Text(one), Val::Text(other)) => Some(one.as_str().cmp(other.as_str())),
        (Val::Bool(one), Val::Bool(other)) => Some(one.cmp(other)),
        _ => None,
    }
}

/// How a whole number and one with a fraction are ordered, without rounding the whole one.
fn order_mixed(whole: i64, number: f64) -> Option<Ordering> {
    /// Two to the 63rd, the first number beyond all whole ones.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if number.is_nan() {
        return None;
    }
    if number >= BEYOND {
        return Some(Ordering::Less);
    }
    if number < -BEYOND {
        return Some(Ordering::Greater);
    }
    let floor = number.floor();
    #[expect(clippy::cast_possible_truncation, reason = "the bounds were looked at above")]
    let below = floor as i64;
    let rest = if number > floor { Ordering::Less } else { Ordering::Equal };
    Some(whole.cmp(&below).then(rest))
}
