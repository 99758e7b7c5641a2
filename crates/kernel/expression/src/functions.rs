//! Operators and functions over values.

use std::cmp::Ordering;

use cel::common::ast::operators as op;
use wharf_vocab::quantity;

use crate::EvaluateError;
use crate::evaluate::Machine;
use crate::fault;
use crate::value::{List, Map, Val, is_same, moment_text, order, span_text};

type ValueResult<T> = Result<T, EvaluateError>;

/// Functions, how many values they take, the one they are called on among them, and whether they
/// are called on one.
const FUNCTIONS: [(&str, usize, CallStyle); 28] = [
    ("size", 1, CallStyle::Both),
    ("contains", 2, CallStyle::Method),
    ("startsWith", 2, CallStyle::Method),
    ("endsWith", 2, CallStyle::Method),
    ("indexOf", 2, CallStyle::Method),
    ("lowerAscii", 1, CallStyle::Method),
    ("upperAscii", 1, CallStyle::Method),
    ("trim", 1, CallStyle::Method),
    ("split", 2, CallStyle::Method),
    ("join", 1, CallStyle::Method),
    ("join", 2, CallStyle::Method),
    ("replace", 3, CallStyle::Method),
    ("substring", 2, CallStyle::Method),
    ("substring", 3, CallStyle::Method),
    ("keys", 1, CallStyle::Method),
    ("values", 1, CallStyle::Method),
    ("distinct", 1, CallStyle::Method),
    ("sort", 1, CallStyle::Method),
    ("int", 1, CallStyle::Function),
    ("double", 1, CallStyle::Function),
    ("string", 1, CallStyle::Function),
    ("bool", 1, CallStyle::Function),
    ("type", 1, CallStyle::Function),
    ("min", 1, CallStyle::Function),
    ("max", 1, CallStyle::Function),
    ("sum", 1, CallStyle::Function),
    ("timestamp", 1, CallStyle::Function),
    ("duration", 1, CallStyle::Function),
];
/// Operators, which the parser writes as functions.
const OPERATORS: [&str; 19] = [
    op::CONDITIONAL,
    op::LOGICAL_AND,
    op::LOGICAL_OR,
    op::LOGICAL_NOT,
    op::SUBSTRACT,
    op::ADD,
    op::MULTIPLY,
    op::DIVIDE,
    op::MODULO,
    op::EQUALS,
    op::NOT_EQUALS,
    op::GREATER_EQUALS,
    op::LESS_EQUALS,
    op::GREATER,
    op::LESS,
    op::NEGATE,
    op::INDEX,
    op::NOT_STRICTLY_FALSE,
    op::IN,
];

/// How a function is called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallStyle {
    /// `f(x)`
    Function,
    /// `x.f()`
    Method,
    /// Either way.
    Both,
}

/// Whether there is such a function.
pub(crate) fn is_known(name: &str, count: usize, on_value: bool) -> bool {
    let fits = |style: CallStyle| match style {
        CallStyle::Function => !on_value,
        CallStyle::Method => on_value,
        CallStyle::Both => true,
    };
    let is_function = FUNCTIONS
        .iter()
        .any(|(known, takes, style)| *known == name && *takes == count && fits(*style));
    is_function || (!on_value && OPERATORS.contains(&name))
}

/// Calls an operator or a function with values; the one that it is called on stands first.
pub(crate) fn call<'a>(
    machine: &mut Machine<'a>,
    name: &str,
    values: &[Val<'a>],
) -> ValueResult<Val<'a>> {
    match values {
        [on] => unary(machine, name, on),
        [one, other] => binary(machine, name, one, other),
        [on, one, other] => ternary(machine, name, on, (one, other)),
        _ => misfit(name),
    }
}

fn misfit<T>(name: &str) -> ValueResult<T> {
    let name = name.trim_matches(['_', '@']);
    fault(format!("`{name}` does not fit these values"))
}

fn unary<'a>(machine: &mut Machine<'a>, name: &str, on: &Val<'a>) -> ValueResult<Val<'a>> {
    Ok(match (name, on) {
        (op::NEGATE, Val::Int(whole)) => Val::Int(whole.checked_neg().map_or_else(overflow, Ok)?),
        (op::NEGATE, Val::Double(number)) => Val::Double(-number),
        (op::NEGATE, Val::Span(ms)) => Val::Span(ms.checked_neg().map_or_else(overflow, Ok)?),
        ("size", Val::Text(text)) => {
            let text = text.as_str();
            machine.work(text.len() as u64 / 64)?;
            count(text.chars().count())
        }
        ("size", Val::List(list)) => count(list.len()),
        ("size", Val::Map(map)) => count(map.len()),
        ("int", _) => Val::Int(whole(on)?),
        ("double", _) => Val::Double(finite(number(on)?)?),
        ("string", _) => text_of(machine, on)?,
        ("bool", Val::Bool(truth)) => Val::Bool(*truth),
        ("bool", Val::Text(text)) => match text.as_str() {
            "true" => Val::Bool(true),
            "false" => Val::Bool(false),
            _ => return fault("this text is no truth value"),
        },
        ("type", _) => Val::text(type_of(on)),
        ("timestamp", Val::Moment(ms)) => Val::Moment(*ms),
        ("timestamp", Val::Text(text)) => match wharf_vocab::rfc3339_ms(text.as_str()) {
            Some(ms) => Val::Moment(ms),
            None => return fault("this text is no moment as RFC 3339 writes it"),
        },
        ("duration", Val::Span(ms)) => Val::Span(*ms),
        ("duration", Val::Text(text)) => Val::Span(span(text.as_str())?),
        ("lowerAscii", Val::Text(text)) => made(machine, &text.as_str().to_ascii_lowercase())?,
        ("upperAscii", Val::Text(text)) => made(machine, &text.as_str().to_ascii_uppercase())?,
        ("trim", Val::Text(text)) => made(machine, text.as_str().trim())?,
        ("join", Val::List(list)) => join(machine, list, "")?,
        ("keys", Val::Map(map)) => {
            let keys = keys(machine, map)?;
            Val::list(keys.iter().map(|key| Val::text(key)).collect())
        }
        ("values", Val::Map(map)) => {
            let keys = keys(machine, map)?;
            Val::list(keys.iter().filter_map(|key| map.get(key)).collect())
        }
        ("distinct", Val::List(list)) => distinct(machine, list)?,
        ("sort", Val::List(list)) => sort(machine, list)?,
        ("min", Val::List(list)) => outermost(machine, list, Ordering::Less)?,
        ("max", Val::List(list)) => outermost(machine, list, Ordering::Greater)?,
        ("sum", Val::List(list)) => {
            let mut sum = Val::Int(0);
            for item in list.iter() {
                machine.work(1)?;
                sum = arithmetic(op::ADD, &sum, &item)?;
            }
            sum
        }
        _ => return misfit(name),
    })
}

fn binary<'a>(
    machine: &mut Machine<'a>,
    name: &str,
    one: &Val<'a>,
    other: &Val<'a>,
) -> ValueResult<Val<'a>> {
    Ok(match (name, one, other) {
        (op::EQUALS, _, _) => {
            Val::Bool(is_same(one, other, &mut |operations| machine.work(operations))?)
        }
        (op::NOT_EQUALS, _, _) => {
            Val::Bool(!is_same(one, other, &mut |operations| machine.work(operations))?)
        }
        (op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS, _, _) => {
            let Some(order) = order(one, other) else {
                let (one, other) = (one.kind(), other.kind());
                return fault(format!("{one} and {other} cannot be compared"));
            };
            Val::Bool(match name {
                op::LESS => order.is_lt(),
                op::LESS_EQUALS => order.is_le(),
                op::GREATER => order.is_gt(),
                _ => order.is_ge(),
            })
        }
        (op::IN, _, Val::List(list)) => {
            for item in list.iter() {
                if is_same(one, &item, &mut |operations| machine.work(operations))? {
                    return Ok(Val::Bool(true));
                }
            }
            Val::Bool(false)
        }
        (op::IN, Val::Text(key), Val::Map(map)) => Val::Bool(map.get(key.as_str()).is_some()),
        (op::SUBSTRACT | op::MULTIPLY | op::DIVIDE | op::MODULO, _, _) => {
            arithmetic(name, one, other)?
        }
        ("contains", Val::Text(text), Val::Text(part)) => {
            let (text, part) = (text.as_str(), part.as_str());
            machine.work(text.len() as u64 / 64)?;
            Val::Bool(text.contains(part))
        }
        ("contains", Val::List(_), _) => return binary(machine, op::IN, other, one),
        ("startsWith", Val::Text(text), Val::Text(part)) => {
            Val::Bool(text.as_str().starts_with(part.as_str()))
        }
        ("endsWith", Val::Text(text), Val::Text(part)) => {
            Val::Bool(text.as_str().ends_with(part.as_str()))
        }
        ("indexOf", Val::Text(text), Val::Text(part)) => {
            let text = text.as_str();
            machine.work(text.len() as u64 / 64)?;
            let found = text.find(part.as_str());
            found.map_or(Val::Int(-1), |at| count(text[..at].chars().count()))
        }
        ("split", Val::Text(text), Val::Text(by)) => {
            let mut items = Vec::new();
            for part in text.as_str().split(by.as_str()) {
                items.push(made(machine, part)?);
            }
            Val::list(items)
        }
        ("join", Val::List(list), Val::Text(by)) => join(machine, list, by.as_str())?,
        ("substring", Val::Text(text), Val::Int(from)) => {
            let end = i64::try_from(text.as_str().chars().count()).unwrap_or(i64::MAX);
            substring(machine, text.as_str(), *from, end)?
        }
        _ => return misfit(name),
    })
}

fn ternary<'a>(
    machine: &mut Machine<'a>,
    name: &str,
    on: &Val<'a>,
    (one, other): (&Val<'a>, &Val<'a>),
) -> ValueResult<Val<'a>> {
    match (name, on, one, other) {
        ("replace", Val::Text(text), Val::Text(from), Val::Text(to)) => {
            let (text, from, to) = (text.as_str(), from.as_str(), to.as_str());
            machine.work(text.len() as u64 / 64)?;
            // Counted before it is made, since what is put in may be much larger.
            let times = text.matches(from).count();
            machine.work((times as u64).saturating_mul(to.len() as u64) / 64)?;
            made(machine, &text.replace(from, to))
        }
        ("substring", Val::Text(text), Val::Int(from), Val::Int(to)) => {
            substring(machine, text.as_str(), *from, *to)
        }
        _ => misfit(name),
    }
}

/// An element of a list, or a field of an object.
pub(crate) fn index<'a>(on: &Val<'a>, index: &Val<'a>) -> ValueResult<Val<'a>> {
    let found = match (on, index) {
        (Val::List(list), Val::Int(at)) => usize::try_from(*at).ok().and_then(|at| list.get(at)),
        (Val::Map(map), Val::Text(key)) => map.get(key.as_str()),
        _ => return fault(format!("{} has nothing under {}", on.kind(), index.kind())),
    };
    found.map_or_else(|| fault("there is no such element"), Ok)
}

/// `+` of numbers, texts, lists and times.
pub(crate) fn add<'a>(
    machine: &mut Machine<'a>,
    one: &Val<'a>,
    other: &Val<'a>,
) -> ValueResult<Val<'a>> {
    match (one, other) {
        (Val::Text(one), Val::Text(other)) => {
            let (one, other) = (one.as_str(), other.as_str());
            machine.work((one.len() as u64 + other.len() as u64) / 64)?;
            Ok(Val::text(&[one, other].concat()))
        }
        (Val::List(one), Val::List(other)) => {
            machine.work(one.len() as u64 + other.len() as u64)?;
            Ok(Val::list(one.iter().chain(other.iter()).collect()))
        }
        _ => arithmetic(op::ADD, one, other),
    }
}

fn arithmetic<'a>(name: &str, one: &Val<'a>, other: &Val<'a>) -> ValueResult<Val<'a>> {
    let checked = |result: Option<i64>| result.map_or_else(overflow, Ok);
    Ok(match (one, other) {
        (Val::Int(_), Val::Int(0)) if matches!(name, op::DIVIDE | op::MODULO) => {
            return fault("nothing can be divided by zero");
        }
        (Val::Int(one), Val::Int(other)) => Val::Int(checked(match name {
            op::ADD => one.checked_add(*other),
            op::SUBSTRACT => one.checked_sub(*other),
            op::MULTIPLY => one.checked_mul(*other),
            op::DIVIDE => one.checked_div(*other),
            _ => one.checked_rem(*other),
        })?),
        (Val::Int(_) | Val::Double(_), Val::Int(_) | Val::Double(_)) if name != op::MODULO => {
            let (one, other) = (number(one)?, number(other)?);
            Val::Double(finite(match name {
                op::ADD => one + other,
                op::SUBSTRACT => one - other,
                op::MULTIPLY => one * other,
                _ => one / other,
            })?)
        }
        (Val::Moment(one), Val::Span(other)) | (Val::Span(other), Val::Moment(one))
            if name == op::ADD =>
        {
            Val::Moment(checked(one.checked_add(*other))?)
        }
        (Val::Moment(one), Val::Span(other)) if name == op::SUBSTRACT => {
            Val::Moment(checked(one.checked_sub(*other))?)
        }
        (Val::Moment(one), Val::Moment(other)) if name == op::SUBSTRACT => {
            Val::Span(checked(one.checked_sub(*other))?)
        }
        (Val::Span(one), Val::Span(other)) if name == op::ADD => {
            Val::Span(checked(one.checked_add(*other))?)
        }
        (Val::Span(one), Val::Span(other)) if name == op::SUBSTRACT => {
            Val::Span(checked(one.checked_sub(*other))?)
        }
        _ => return misfit(name),
    })
}

fn overflow<T>() -> ValueResult<T> {
    fault("a whole number is too large")
}

fn finite(number: f64) -> ValueResult<f64> {
    if number.is_finite() { Ok(number) } else { fault("the result is not a finite number") }
}

fn count<'a>(number: usize) -> Val<'a> {
    Val::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn whole(on: &Val<'_>) -> ValueResult<i64> {
    /// Two to the 63rd.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    match on {
        Val::Int(whole) => Ok(*whole),
        Val::Double(number) if *number >= -BEYOND && *number < BEYOND => {
            #[expect(clippy::cast_possible_truncation, reason = "cutting the rest off is meant")]
            let whole = *number as i64;
            Ok(whole)
        }
        Val::Double(_) => overflow(),
        Val::Text(text) => {
            text.as_str().parse().map_or_else(|_| fault("this text is no whole number"), Ok)
        }
        Val::Moment(ms) => Ok(ms.div_euclid(1_000)),
        other => fault(format!("{} is no whole number", other.kind())),
    }
}

fn number(on: &Val<'_>) -> ValueResult<f64> {
    match on {
        #[expect(clippy::cast_precision_loss, reason = "the nearest number is meant")]
        Val::Int(whole) => Ok(*whole as f64),
        Val::Double(number) => Ok(*number),
        Val::Text(text) => {
            text.as_str().parse().map_or_else(|_| fault("this text is no number"), Ok)
        }
        other => fault(format!("{} is no number", other.kind())),
    }
}

fn span(text: &str) -> ValueResult<i64> {
    let (sign, rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let ms = quantity::duration_ms(rest).and_then(|ms| i64::try_from(ms).ok());
    ms.map_or_else(|| fault("this text is no length of time"), |ms| Ok(sign * ms))
}

/// A text that was made, counted by its length.
fn made<'a>(machine: &mut Machine<'a>, text: &str) -> ValueResult<Val<'a>> {
    machine.work(1 + text.len() as u64 / 64)?;
    Ok(Val::text(text))
}

fn text_of<'a>(machine: &mut Machine<'a>, on: &Val<'a>) -> ValueResult<Val<'a>> {
    let text = match on {
        Val::Text(_) => return Ok(on.clone()),
        Val::Bool(truth) => truth.to_string(),
        Val::Int(whole) => whole.to_string(),
        Val::Double(number) => number.to_string(),
        Val::Moment(ms) => moment_text(*ms)?,
        Val::Span(ms) => span_text(*ms),
        other => return fault(format!("{} is no text", other.kind())),
    };
    made(machine, &text)
}

fn type_of(on: &Val<'_>) -> &'static str {
    match on {
        Val::Null => "null_type",
        Val::Bool(_) => "bool",
        Val::Int(_) => "int",
        Val::Double(_) => "double",
        Val::Text(_) => "string",
        Val::List(_) => "list",
        Val::Map(_) => "map",
        Val::Moment(_) => "timestamp",
        Val::Span(_) => "duration",
    }
}

fn keys(machine: &mut Machine<'_>, map: &Map<'_>) -> ValueResult<Vec<String>> {
    machine.work(map.len() as u64)?;
    Ok(map.keys())
}

fn join<'a>(machine: &mut Machine<'a>, list: &List<'a>, by: &str) -> ValueResult<Val<'a>> {
    let mut joined = String::new();
    for (at, item) in list.iter().enumerate() {
        let Val::Text(text) = &item else { return misfit("join") };
        machine.work(1 + (text.as_str().len() as u64 + by.len() as u64) / 64)?;
        if at > 0 {
            joined.push_str(by);
        }
        joined.push_str(text.as_str());
    }
    Ok(Val::text(&joined))
}

fn substring<'a>(
    machine: &mut Machine<'a>,
    text: &str,
    from: i64,
    to: i64,
) -> ValueResult<Val<'a>> {
    machine.work(text.len() as u64 / 64)?;
    let length = text.chars().count();
    let at = |at: i64| usize::try_from(at).ok().filter(|at| *at <= length);
    let (Some(from), Some(to)) = (at(from), at(to)) else {
        return fault("the text is not as long as that");
    };
    if from > to {
        return fault("a part of a text does not end before it begins");
    }
    made(machine, &text.chars().skip(from).take(to - from).collect::<String>())
}

fn distinct<'a>(machine: &mut Machine<'a>, list: &List<'a>) -> ValueResult<Val<'a>> {
    let mut kept: Vec<Val<'a>> = Vec::new();
    'items: for item in list.iter() {
        for known in &kept {
            if is_same(known, &item, &mut |operations| machine.work(operations))? {
                continue 'items;
            }
        }
        kept.push(item);
    }
    Ok(Val::list(kept))
}

fn sort<'a>(machine: &mut Machine<'a>, list: &List<'a>) -> ValueResult<Val<'a>> {
    let mut items: Vec<Val<'a>> = list.iter().collect();
    machine.work((items.len() as u64).saturating_mul(16))?;
    // What cannot be compared with the first one cannot be put in an order at all.
    let first = items.first().cloned();
    if items.iter().any(|item| first.as_ref().is_some_and(|first| order(first, item).is_none())) {
        return misfit("sort");
    }
    items.sort_by(|one, other| order(one, other).unwrap_or(Ordering::Equal));
    Ok(Val::list(items))
}

fn outermost<'a>(
    machine: &mut Machine<'a>,
    list: &List<'a>,
    side: Ordering,
) -> ValueResult<Val<'a>> {
    let mut found: Option<Val<'a>> = None;
    for item in list.iter() {
        machine.work(1)?;
        let is_beyond = match &found {
            None => true,
            Some(so_far) => match order(&item, so_far) {
                Some(order) => order == side,
                None => return fault("these values cannot be compared"),
            },
        };
        if is_beyond {
            found = Some(item);
        }
    }
    found.map_or_else(|| fault("the list is empty"), Ok)
}
