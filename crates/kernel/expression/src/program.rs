//! An expression that was read, and may be evaluated.

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr};
use cel::parser::PrattParser;
use serde_json::Value;
use wharf_vocab::limits::EXPRESSION_BYTES_MAX;

use crate::evaluate::{Machine, NameScope};
use crate::references::Walk;
use crate::{CompileError, EvaluateError, References};

/// How deep parts may stand in each other.
const DEPTH_MAX: usize = 100;
/// How many parts there may be.
const NODES_MAX: usize = 4_000;

/// An expression that was read.
#[derive(Debug, Clone)]
pub struct Program {
    expr: IdedExpr,
    references: References,
}

impl Program {
    /// Reads an expression. What it calls exists; what it refers to is for the reader to compare.
    pub fn compile(text: &str) -> Result<Self, CompileError> {
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(CompileError(format!("it has more than {EXPRESSION_BYTES_MAX} bytes")));
        }
        let parser = PrattParser::new()
            .max_recursion_depth(32)
            .max_expression_node_count(NODES_MAX)
            .error_recovery_limit(1);
        let expr = parser.parse(text).map_err(|errors| {
            let first = errors.errors.first();
            CompileError(first.map_or_else(
                || "it cannot be read".to_owned(),
                |error| match error.pos {
                    (_, column) if column > 0 => {
                        format!("at character {column}: {}", plain(&error.msg))
                    }
                    _ => plain(&error.msg),
                },
            ))
        })?;
        if depth(&expr, DEPTH_MAX).is_none() {
            return Err(CompileError(format!("it is nested more than {DEPTH_MAX} levels deep")));
        }
        let mut walk = Walk::default();
        walk.expression(&expr)?;
        Ok(Self { expr, references: walk.found })
    }

    /// What it refers to.
    pub fn references(&self) -> &References {
        &self.references
    }

    /// What it gives. It takes from `operations` what it used, and from `bytes` the size of the
    /// result, so that several may share one bound.
    pub fn evaluate(
        &self,
        scope: &NameScope<'_>,
        operations: &mut u64,
        bytes: &mut usize,
    ) -> Result<Value, EvaluateError> {
        let mut machine = Machine::new(scope, *operations);
        let result = machine.evaluate(&self.expr);
        *operations = machine.left();
        result?.into_json(bytes)
    }
}

/// The parser's message without its own mark.
fn plain(text: &str) -> String {
    text.strip_prefix("Syntax error: ").unwrap_or(text).to_owned()
}

/// How deep an expression goes; `None` beyond `left`.
fn depth(expr: &IdedExpr, left: usize) -> Option<usize> {
    let left = left.checked_sub(1)?;
    match &expr.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Some(left),
        Expr::Select(select) => depth(&select.operand, left),
        Expr::List(list) => least(list.elements.iter(), left),
        Expr::Call(call) => {
            let target = call.target.iter().map(|target| &**target);
            least(target.chain(&call.args), left)
        }
        Expr::Map(map) => entries(&map.entries, left),
        Expr::Struct(message) => entries(&message.entries, left),
        Expr::Comprehension(inner) => {
            let parts = [
                &inner.iter_range,
                &inner.accu_init,
                &inner.loop_cond,
                &inner.loop_step,
                &inner.result,
            ];
            least(parts.into_iter(), left)
        }
    }
}

/// What the deepest of several parts leaves.
fn least<'a>(mut parts: impl Iterator<Item = &'a IdedExpr>, left: usize) -> Option<usize> {
    parts.try_fold(left, |least, part| Some(least.min(depth(part, left)?)))
}

fn entries(entries: &[cel::common::ast::IdedEntryExpr], left: usize) -> Option<usize> {
    entries.iter().try_fold(left, |least, entry| match &entry.expr {
        EntryExpr::MapEntry(entry) => {
            Some(least.min(depth(&entry.key, left)?).min(depth(&entry.value, left)?))
        }
        EntryExpr::StructField(field) => Some(least.min(depth(&field.value, left)?)),
    })
}
