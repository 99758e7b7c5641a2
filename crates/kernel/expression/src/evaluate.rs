//! Evaluates expressions, counting what is done.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use cel::IdedExpr;
use cel::common::ast::operators::{
    ADD, CONDITIONAL, INDEX, LOGICAL_AND, LOGICAL_NOT, LOGICAL_OR, NOT_STRICTLY_FALSE,
};
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue};
use serde_json::Value;

use crate::EvaluateError;
use crate::fault;
use crate::functions;
use crate::value::{List, Map, TextValue, Val};

/// The values that names stand for.
#[derive(Debug, Clone, Default)]
pub struct NameScope<'a> {
    names: NameLevel<'a>,
}

/// Names and what they stand for, on one level.
pub(crate) type NameLevel<'a> = BTreeMap<String, BoundName<'a>>;

/// What a name stands for.
#[derive(Debug, Clone)]
pub(crate) enum BoundName<'a> {
    Value(Cow<'a, Value>),
    Names(NameLevel<'a>),
}

impl<'a> NameScope<'a> {
    /// The same with one more name.
    #[must_use]
    pub fn with(mut self, name: &str, value: &'a Value) -> Self {
        self.set(&[name], Cow::Borrowed(value));
        self
    }

    /// Makes a path such as `["steps", "fetch", "outputs"]` stand for a value, without putting
    /// together an object that holds it.
    pub fn set(&mut self, path: &[&str], value: Cow<'a, Value>) {
        let Some((last, above)) = path.split_last() else { return };
        let mut node = &mut self.names;
        for name in above {
            let below = node
                .entry((*name).to_owned())
                .or_insert_with(|| BoundName::Names(NameLevel::new()));
            if matches!(below, BoundName::Value(_)) {
                *below = BoundName::Names(NameLevel::new());
            }
            let BoundName::Names(names) = below else { return };
            node = names;
        }
        node.insert((*last).to_owned(), BoundName::Value(value));
    }

    /// Makes a name stand for an object that has nothing yet, unless it stands for one already.
    pub fn open(&mut self, name: &str) {
        self.names.entry(name.to_owned()).or_insert_with(|| BoundName::Names(NameLevel::new()));
    }
}

/// What evaluates one expression.
pub(crate) struct Machine<'a> {
    scope: &'a NameScope<'a>,
    /// Names that comprehensions bound, the innermost last.
    bound: Vec<(&'a str, Val<'a>)>,
    limit: u64,
    used: u64,
}

impl<'a> Machine<'a> {
    pub(crate) fn new(scope: &'a NameScope<'a>, limit: u64) -> Self {
        Self { scope, bound: Vec::new(), limit, used: 0 }
    }

    /// How many operations are left.
    pub(crate) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// Counts some operations.
    pub(crate) fn work(&mut self, operations: u64) -> Result<(), EvaluateError> {
        self.used = self.used.saturating_add(operations);
        if self.used > self.limit { Err(EvaluateError::Operations(self.limit)) } else { Ok(()) }
    }

    pub(crate) fn evaluate(&mut self, expr: &'a IdedExpr) -> Result<Val<'a>, EvaluateError> {
        self.work(1)?;
        match &expr.expr {
            Expr::Literal(literal) => self.literal(literal),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => {
                let on = self.evaluate(&select.operand)?;
                let Val::Map(map) = &on else {
                    return fault(format!(
                        "`.{}` needs an object, not {}",
                        select.field,
                        on.kind()
                    ));
                };
                let found = map.get(&select.field);
                if select.test {
                    return Ok(Val::Bool(found.is_some()));
                }
                found.map_or_else(|| fault(format!("there is no `{}`", select.field)), Ok)
            }
            Expr::List(list) => {
                let mut items = Vec::with_capacity(list.elements.len());
                for item in &list.elements {
                    items.push(self.evaluate(item)?);
                }
                Ok(Val::list(items))
            }
            Expr::Map(map) => {
                let mut made = BTreeMap::new();
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        return fault("there are no messages");
                    };
                    let Val::Text(key) = self.evaluate(&entry.key)? else {
                        return fault("the keys of an object are texts");
                    };
                    let value = self.evaluate(&entry.value)?;
                    if made.insert(key.as_str().to_owned(), value).is_some() {
                        return fault("an object has one key twice");
                    }
                }
                Ok(Val::Map(Map::Made(Rc::new(made))))
            }
            Expr::Comprehension(inner) => self.comprehension(inner),
            Expr::Call(call) => self.call(call),
            Expr::Struct(_) | Expr::Unspecified => fault("it cannot be evaluated"),
        }
    }

    fn literal(&mut self, literal: &'a LiteralValue) -> Result<Val<'a>, EvaluateError> {
        Ok(match literal {
            LiteralValue::Boolean(truth) => Val::Bool(*truth.inner()),
            LiteralValue::Double(number) => Val::Double(*number.inner()),
            LiteralValue::Int(whole) => Val::Int(*whole.inner()),
            LiteralValue::UInt(whole) => match i64::try_from(*whole.inner()) {
                Ok(whole) => Val::Int(whole),
                Err(_) => return fault("a whole number is too large"),
            },
            LiteralValue::Null => Val::Null,
            LiteralValue::String(text) => Val::Text(TextValue::Json(text.inner())),
            LiteralValue::Bytes(_) => return fault("there are no bytes"),
        })
    }

    fn name(&mut self, name: &str) -> Result<Val<'a>, EvaluateError> {
        if let Some((_, value)) = self.bound.iter().rev().find(|(known, _)| *known == name) {
            return Ok(value.clone());
        }
        match self.scope.names.get(name) {
            Some(named) => Ok(Val::named(named)),
            None => fault(format!("there is no `{name}` here")),
        }
    }

    fn call(&mut self, call: &'a CallExpr) -> Result<Val<'a>, EvaluateError> {
        match (call.func_name.as_str(), call.args.as_slice()) {
            (LOGICAL_AND, [one, other]) => self.either(one, other, false),
            (LOGICAL_OR, [one, other]) => self.either(one, other, true),
            (CONDITIONAL, [when, then, otherwise]) => {
                let chosen = if self.truth(when)? { then } else { otherwise };
                self.evaluate(chosen)
            }
            (LOGICAL_NOT, [on]) => self.truth(on).map(|truth| Val::Bool(!truth)),
            (NOT_STRICTLY_FALSE, [on]) => match self.evaluate(on) {
                Ok(Val::Bool(truth)) => Ok(Val::Bool(truth)),
                Ok(_) => Ok(Val::Bool(true)),
                Err(error) if error.is_fault() => Ok(Val::Bool(true)),
                Err(error) => Err(error),
            },
            (ADD, [list, more]) => self.add(list, more),
            (INDEX, [on, index]) => {
                let on = self.evaluate(on)?;
                let index = self.evaluate(index)?;
                functions::index(&on, &index)
            }
            (name, args) => {
                let mut values = Vec::with_capacity(args.len() + 1);
                for part in call.target.iter().map(|target| &**target).chain(args) {
                    values.push(self.evaluate(part)?);
                }
                functions::call(self, name, &values)
            }
        }
    }

    fn truth(&mut self, expr: &'a IdedExpr) -> Result<bool, EvaluateError> {
        match self.evaluate(expr)? {
            Val::Bool(truth) => Ok(truth),
            other => fault(format!("a condition is a truth value, not {}", other.kind())),
        }
    }

    /// `&&` and `||`: one side that decides makes up for an error of the other.
    fn either(
        &mut self,
        one: &'a IdedExpr,
        other: &'a IdedExpr,
        decides: bool,
    ) -> Result<Val<'a>, EvaluateError> {
        let first = match self.truth(one) {
            Ok(truth) if truth == decides => return Ok(Val::Bool(decides)),
            Err(error) if !error.is_fault() => return Err(error),
            first => first,
        };
        match self.truth(other) {
            Ok(truth) if truth == decides => Ok(Val::Bool(decides)),
            Err(error) if !error.is_fault() => Err(error),
            second => first.and(second).map(Val::Bool),
        }
    }

    /// `+`. What a comprehension has gathered so far grows in its place.
    fn add(&mut self, one: &'a IdedExpr, other: &'a IdedExpr) -> Result<Val<'a>, EvaluateError> {
        let gathered = match &one.expr {
            // The user cannot write a name that begins so.
            Expr::Ident(name) if name.starts_with('@') => Some(name.as_str()),
            _ => None,
        };
        let Some(name) = gathered else {
            let (one, other) = (self.evaluate(one)?, self.evaluate(other)?);
            return functions::add(self, &one, &other);
        };
        let more = self.evaluate(other)?;
        self.work(1)?;
        let slot = self.bound.iter_mut().rev().find(|(known, _)| *known == name);
        let gathered = slot.map(|(_, value)| std::mem::replace(value, Val::Null));
        match (gathered, more) {
            (Some(Val::List(List::Made(mut items))), Val::List(List::Made(more))) => {
                Rc::make_mut(&mut items).extend(more.iter().cloned());
                Ok(Val::List(List::Made(items)))
            }
            (Some(one), other) => functions::add(self, &one, &other),
            (None, _) => fault("it cannot be evaluated"),
        }
    }

    fn comprehension(&mut self, inner: &'a ComprehensionExpr) -> Result<Val<'a>, EvaluateError> {
        let range = self.evaluate(&inner.iter_range)?;
        let items: Box<dyn Iterator<Item = Val<'a>>> = match &range {
            Val::List(list) => Box::new(list.iter()),
            Val::Map(map) => {
                let keys = map.keys();
                self.work(keys.len() as u64)?;
                Box::new(keys.into_iter().map(|key| Val::text(&key)))
            }
            other => return fault(format!("a list or an object is needed, not {}", other.kind())),
        };
        if inner.iter_var2.is_some() {
            return fault("a macro has one variable");
        }
        let gathered = self.evaluate(&inner.accu_init)?;
        let before = self.bound.len();
        self.bound.push((&inner.accu_var, gathered));
        self.bound.push((&inner.iter_var, Val::Null));
        let result = self.each(inner, items, before);
        self.bound.truncate(before);
        result
    }

    /// Goes through the items of a comprehension whose names stand at a place of the stack.
    fn each(
        &mut self,
        inner: &'a ComprehensionExpr,
        items: Box<dyn Iterator<Item = Val<'a>> + '_>,
        at: usize,
    ) -> Result<Val<'a>, EvaluateError> {
        for item in items {
            self.bound[at + 1].1 = item;
            if !self.truth(&inner.loop_cond)? {
                break;
            }
            let step = self.evaluate(&inner.loop_step)?;
            self.bound[at].1 = step;
        }
        self.evaluate(&inner.result)
    }
}
