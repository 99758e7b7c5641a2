//! What an expression refers to, found without evaluating it.

use std::collections::BTreeSet;

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr, LiteralValue};

use crate::CompileError;
use crate::functions;

/// Names that an expression refers to, with the fields of them that it names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    /// Paths such as `["steps", "fetch", "outputs"]`, as far as they are written out.
    pub paths: BTreeSet<Vec<String>>,
}

impl References {
    /// The names themselves.
    pub fn roots(&self) -> BTreeSet<&str> {
        self.paths.iter().filter_map(|path| path.first()).map(String::as_str).collect()
    }

    /// The fields of a name that are referred to; `None` if it may be any of them.
    pub fn fields(&self, root: &str) -> Option<BTreeSet<&str>> {
        let mut fields = BTreeSet::new();
        for path in self.paths.iter().filter(|path| path.first().is_some_and(|name| name == root)) {
            fields.insert(path.get(1)?.as_str());
        }
        Some(fields)
    }
}

/// Goes through an expression: what it refers to, and whether all it calls is there.
#[derive(Default)]
pub(crate) struct Walk {
    pub(crate) found: References,
    bound: Vec<String>,
}

impl Walk {
    pub(crate) fn expression(&mut self, expr: &IdedExpr) -> Result<(), CompileError> {
        match &expr.expr {
            Expr::Unspecified => Err(CompileError("a part of it is missing".to_owned())),
            Expr::Literal(LiteralValue::Bytes(_)) => refuse("there are no bytes"),
            Expr::Literal(_) => Ok(()),
            Expr::Struct(_) => refuse("there are no messages"),
            Expr::Ident(_) | Expr::Select(_) => self.path(expr),
            Expr::List(list) if !list.optional_indices.is_empty() => refuse("`?` is not known"),
            Expr::List(list) => list.elements.iter().try_for_each(|item| self.expression(item)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) if !entry.optional => {
                    self.expression(&entry.key)?;
                    self.expression(&entry.value)
                }
                _ => refuse("`?` is not known"),
            }),
            Expr::Comprehension(inner) => {
                self.expression(&inner.iter_range)?;
                self.expression(&inner.accu_init)?;
                let before = self.bound.len();
                self.bound.push(inner.accu_var.clone());
                self.bound.push(inner.iter_var.clone());
                self.bound.extend(inner.iter_var2.clone());
                let parts = [&inner.loop_cond, &inner.loop_step, &inner.result];
                let walked = parts.into_iter().try_for_each(|part| self.expression(part));
                self.bound.truncate(before);
                walked
            }
            Expr::Call(call) => {
                let count = call.args.len() + usize::from(call.target.is_some());
                if !functions::is_known(&call.func_name, count, call.target.is_some()) {
                    let name = &call.func_name;
                    return Err(CompileError(format!("there is no such function `{name}`")));
                }
                if call.func_name == cel::common::ast::operators::INDEX {
                    return self.path(expr).and_then(|()| self.indexes(expr));
                }
                let target = call.target.iter().map(|target| &**target);
                target.chain(&call.args).try_for_each(|part| self.expression(part))
            }
        }
    }

    /// Notes the longest path that is written out, and goes on below it.
    fn path(&mut self, expr: &IdedExpr) -> Result<(), CompileError> {
        if let Some(path) = path(expr) {
            if path.first().is_some_and(|name| !self.bound.contains(name)) {
                self.found.paths.insert(path);
            }
            return Ok(());
        }
        match &expr.expr {
            Expr::Select(select) => self.expression(&select.operand),
            Expr::Call(call) => call.args.first().map_or(Ok(()), |on| self.expression(on)),
            _ => Ok(()),
        }
    }

    /// What stands in the brackets below a path.
    fn indexes(&mut self, expr: &IdedExpr) -> Result<(), CompileError> {
        match &expr.expr {
            Expr::Call(call) => call.args.get(1).map_or(Ok(()), |index| self.expression(index)),
            _ => Ok(()),
        }
    }
}

/// The names of `a.b["c"].d`; `None` where something else is between them.
fn path(expr: &IdedExpr) -> Option<Vec<String>> {
    match &expr.expr {
        Expr::Ident(name) => Some(vec![name.clone()]),
        Expr::Select(select) => {
            let mut names = path(&select.operand)?;
            names.push(select.field.clone());
            Some(names)
        }
        Expr::Call(call) if call.func_name == cel::common::ast::operators::INDEX => {
            let mut names = path(call.args.first()?)?;
            match &call.args.get(1)?.expr {
                Expr::Literal(LiteralValue::String(key)) => names.push(key.inner().to_owned()),
                _ => return None,
            }
            Some(names)
        }
        _ => None,
    }
}

fn refuse<T>(text: &str) -> Result<T, CompileError> {
    Err(CompileError(text.to_owned()))
}
