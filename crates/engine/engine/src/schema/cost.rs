//! What it costs to check a value, counted without checking it.

use serde_json::Value;

use super::graph::{Graph, Part};

/// Deepest chain of parts, one asking the next. A checker follows it on its stack.
const DEPTH_MAX: usize = 256;
/// Deepest chain of parts that is asked of one value: a value may be 128 levels deep.
const VALUE_DEPTH_MAX: usize = 1_024;
/// Characters that a regular expression reads for the price of one part.
const CHARS_PER_STEP: u64 = 16;
/// How often parts below are asked when their reader must know what they looked at.
const LOOKING_BACK: u64 = 2;

/// How many parts are asked when each is asked once wherever something leads to it. A part that
/// leads back to itself, as in a tree, counts once there. `None` if chains are too long.
pub(super) fn of_schema(graph: &Graph) -> Option<u64> {
    let mut known = vec![CostState::New; graph.len()];
    measure(graph, 0, DEPTH_MAX, &mut known).map(|(cost, _)| cost)
}

#[derive(Clone, Copy)]
enum CostState {
    New,
    UnderWay,
    Known { cost: u64, depth: usize },
}

/// The cost of a part and the longest chain below it.
fn measure(
    graph: &Graph,
    part: Part,
    depth_left: usize,
    known: &mut [CostState],
) -> Option<(u64, usize)> {
    match known[part] {
        CostState::UnderWay => return Some((1, 0)),
        CostState::Known { cost, depth } => return (depth <= depth_left).then_some((cost, depth)),
        CostState::New => known[part] = CostState::UnderWay,
    }
    let left = depth_left.checked_sub(1)?;
    let shape = graph.shape(part);
    let (mut cost, mut deepest) = (shape.own + shape.patterns, 0);
    for next in shape.next() {
        let (below, depth) = measure(graph, next, left, known)?;
        cost = cost.saturating_add(below);
        deepest = deepest.max(depth);
    }
    if shape.looks_back {
        cost = cost.saturating_mul(1 + LOOKING_BACK);
    }
    known[part] = CostState::Known { cost, depth: deepest + 1 };
    Some((cost, deepest + 1))
}

/// Counts how often parts of a schema are asked of parts of a value, and stops when it is too
/// often. It never counts less than a checker does.
pub(super) struct Count<'a> {
    graph: &'a Graph,
    left: u64,
}

impl<'a> Count<'a> {
    /// What checking the value costs; `None` if it is more than `at_most`.
    pub(super) fn of_value(graph: &'a Graph, value: &Value, at_most: u64) -> Option<u64> {
        let mut count = Self { graph, left: at_most };
        count.ask(0, value, VALUE_DEPTH_MAX)?;
        Some(at_most - count.left)
    }

    fn spend(&mut self, cost: u64) -> Option<()> {
        self.left = self.left.checked_sub(cost)?;
        Some(())
    }

    fn ask(&mut self, part: Part, value: &Value, depth_left: usize) -> Option<()> {
        let left = depth_left.checked_sub(1)?;
        let before = self.left;
        let shape = self.graph.shape(part);
        self.spend(shape.own)?;
        for &next in &shape.here {
            self.ask(next, value, left)?;
        }
        match value {
            Value::String(text) => self.spend(shape.patterns * read(text))?,
            Value::Array(items) => self.ask_items(part, items, left)?,
            Value::Object(fields) => {
                for (name, field) in fields {
                    self.ask_field(part, name, field, left)?;
                }
            }
            _ => {}
        }
        if shape.looks_back {
            let below = before - self.left;
            self.spend(below.saturating_mul(LOOKING_BACK))?;
        }
        Some(())
    }

    fn ask_items(&mut self, part: Part, items: &[Value], left: usize) -> Option<()> {
        let shape = self.graph.shape(part);
        if shape.unique {
            for item in items {
                self.spend(weight(item))?;
            }
        }
        for (&next, item) in shape.places.iter().zip(items) {
            self.ask(next, item, left)?;
        }
        for &next in &shape.items {
            for item in items {
                self.ask(next, item, left)?;
            }
        }
        Some(())
    }

    fn ask_field(&mut self, part: Part, name: &str, field: &Value, left: usize) -> Option<()> {
        let shape = self.graph.shape(part);
        self.spend(shape.pattern_fields.len() as u64 * read(name))?;
        let named = shape.fields.get(name);
        let others = shape.other_fields.iter().filter(|_| named.is_none());
        for &next in named.into_iter().chain(&shape.pattern_fields).chain(others) {
            self.ask(next, field, left)?;
        }
        if !shape.names.is_empty() {
            let name = Value::String(name.to_owned());
            for &next in &shape.names {
                self.ask(next, &name, left)?;
            }
        }
        Some(())
    }
}

fn read(text: &str) -> u64 {
    1 + text.len() as u64 / CHARS_PER_STEP
}

/// What it costs to compare a value with another.
fn weight(value: &Value) -> u64 {
    match value {
        Value::String(text) => read(text),
        Value::Array(items) => 1 + items.iter().map(weight).sum::<u64>(),
        Value::Object(fields) => {
            1 + fields.iter().map(|(name, value)| read(name) + weight(value)).sum::<u64>()
        }
        _ => 1,
    }
}
