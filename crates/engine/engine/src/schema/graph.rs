//! The shape of a schema: which parts are asked of which parts of a value.
//!
//! A schema is small, but what it asks for need not be: parts that refer to parts that refer to
//! parts double with every step. Only the shape says how often each is asked.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

/// One part of a schema, by its place in the graph.
pub(super) type Part = usize;

/// The parts of a schema that can be reached from its root, which is the first.
#[derive(Debug, Default)]
pub(super) struct Graph {
    parts: Vec<SchemaPart>,
}

/// What one part asks for.
#[derive(Debug, Default)]
pub(super) struct SchemaPart {
    /// What the part's own words cost, without other parts.
    pub(super) own: u64,
    /// How many regular expressions its strings must fit.
    pub(super) patterns: u64,
    /// Whether all below is asked once more, to see what was looked at.
    pub(super) looks_back: bool,
    /// Whether the items of an array are compared with each other.
    pub(super) unique: bool,
    /// Parts that are asked of the same value.
    pub(super) here: Vec<Part>,
    /// Parts for named fields.
    pub(super) fields: BTreeMap<String, Part>,
    /// Parts for fields whose name fits a pattern.
    pub(super) pattern_fields: Vec<Part>,
    /// Parts for fields that are not named.
    pub(super) other_fields: Vec<Part>,
    /// Parts for the names of fields.
    pub(super) names: Vec<Part>,
    /// Parts for items by their place.
    pub(super) places: Vec<Part>,
    /// Parts for every item.
    pub(super) items: Vec<Part>,
}

impl SchemaPart {
    /// All parts it leads to, in no particular order.
    pub(super) fn next(&self) -> impl Iterator<Item = Part> {
        let lists = [
            &self.here,
            &self.pattern_fields,
            &self.other_fields,
            &self.names,
            &self.places,
            &self.items,
        ];
        lists.into_iter().flatten().chain(self.fields.values()).copied()
    }
}

impl Graph {
    /// The graph of a schema; `None` if it refers to something outside of itself.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let mut builder = Builder::default();
        builder.find_anchors(schema);
        builder.part(schema, schema);
        while let Some((part, schema, base)) = builder.waiting.pop() {
            let shape = builder.shape(schema, base)?;
            builder.graph.parts[part] = shape;
        }
        Some(builder.graph)
    }

    pub(super) fn shape(&self, part: Part) -> &SchemaPart {
        &self.parts[part]
    }

    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// How many regular expressions it has.
    pub(super) fn patterns(&self) -> u64 {
        self.parts.iter().map(|shape| shape.patterns + shape.pattern_fields.len() as u64).sum()
    }
}

#[derive(Default)]
struct Builder<'a> {
    graph: Graph,
    /// Parts by the address of their schema.
    known: HashMap<*const Value, Part>,
    /// Parts that are known but not looked at yet, with the schema that `#` stands for there.
    waiting: Vec<(Part, &'a Value, &'a Value)>,
    /// Schemas by their anchors.
    anchors: HashMap<&'a str, Vec<&'a Value>>,
}

impl<'a> Builder<'a> {
    fn find_anchors(&mut self, schema: &'a Value) {
        match schema {
            Value::Array(items) => items.iter().for_each(|item| self.find_anchors(item)),
            Value::Object(fields) => {
                for key in ["$anchor", "$dynamicAnchor"] {
                    if let Some(Value::String(name)) = fields.get(key) {
                        self.anchors.entry(name).or_default().push(schema);
                    }
                }
                fields.values().for_each(|item| self.find_anchors(item));
            }
            _ => {}
        }
    }

    fn part(&mut self, schema: &'a Value, base: &'a Value) -> Part {
        let part = self.graph.parts.len();
        let part = *self.known.entry(std::ptr::from_ref(schema)).or_insert(part);
        if part == self.graph.parts.len() {
            self.graph.parts.push(SchemaPart { own: 1, ..SchemaPart::default() });
            self.waiting.push((part, schema, base));
        }
        part
    }

    fn shape(&mut self, schema: &'a Value, base: &'a Value) -> Option<SchemaPart> {
        let mut shape = SchemaPart { own: 1, ..SchemaPart::default() };
        let Value::Object(fields) = schema else { return Some(shape) };
        // A part with an id of its own is what `#` stands for below it.
        let base = if fields.contains_key("$id") { schema } else { base };
        for (key, value) in fields {
            match (key.as_str(), value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => {
                    self.refer(target, base, &mut shape)?;
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                    shape.here.extend(all.iter().map(|each| self.part(each, base)));
                }
                ("not" | "if" | "then" | "else", each) => shape.here.push(self.part(each, base)),
                ("dependentSchemas" | "dependencies", Value::Object(all)) => {
                    shape.here.extend(all.values().map(|each| self.part(each, base)));
                }
                ("properties", Value::Object(all)) => {
                    let each =
                        |(name, each): (&String, &'a Value)| (name.clone(), self.part(each, base));
                    shape.fields = all.iter().map(each).collect();
                }
                ("patternProperties", Value::Object(all)) => {
                    shape.pattern_fields = all.values().map(|it| self.part(it, base)).collect();
                }
                ("pattern", _) => shape.patterns = 1,
                ("uniqueItems", Value::Bool(unique)) => shape.unique = *unique,
                _ => self.other(key, value, base, &mut shape),
            }
        }
        shape.own += own_words(fields);
        Some(shape)
    }

    fn other(&mut self, key: &str, value: &'a Value, base: &'a Value, shape: &mut SchemaPart) {
        match (key, value) {
            ("prefixItems" | "items", Value::Array(all)) => {
                shape.places.extend(all.iter().map(|each| self.part(each, base)));
            }
            ("items" | "additionalItems" | "contains", each) => {
                shape.items.push(self.part(each, base));
            }
            ("unevaluatedItems", each) => {
                shape.looks_back = true;
                shape.items.push(self.part(each, base));
            }
            ("additionalProperties", each) => shape.other_fields.push(self.part(each, base)),
            ("unevaluatedProperties", each) => {
                shape.looks_back = true;
                shape.other_fields.push(self.part(each, base));
            }
            ("propertyNames", each) => shape.names.push(self.part(each, base)),
            _ => {}
        }
    }

    /// Follows a reference. One that leads nowhere is left to whoever compiles the schema.
    fn refer(&mut self, target: &str, base: &'a Value, shape: &mut SchemaPart) -> Option<()> {
        let target = decoded(target.strip_prefix('#')?);
        if target.is_empty() {
            shape.here.push(self.part(base, base));
        } else if target.starts_with('/') {
            if let Some((found, base)) = pointed(base, &target) {
                shape.here.push(self.part(found, base));
            }
        } else {
            let named = self.anchors.get(target.as_str()).cloned().unwrap_or_default();
            shape.here.extend(named.into_iter().map(|found| self.part(found, base)));
        }
        Some(())
    }
}

/// What words cost that must be compared one by one.
fn own_words(fields: &Map<String, Value>) -> u64 {
    let of = |key: &str| match fields.get(key) {
        Some(Value::Array(all)) => all.len() as u64 / 4,
        Some(Value::Object(all)) => all.len() as u64 / 4,
        _ => 0,
    };
    of("enum") + of("required") + of("dependentRequired") + of("const")
}

/// The schema a pointer leads to, and what `#` stands for there.
fn pointed<'a>(base: &'a Value, pointer: &str) -> Option<(&'a Value, &'a Value)> {
    let (mut at, mut base) = (base, base);
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        at = match at {
            Value::Object(fields) => fields.get(&step)?,
            Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
            _ => return None,
        };
        if at.get("$id").is_some() {
            base = at;
        }
    }
    Some((at, base))
}

/// A fragment without percent signs. What cannot be read stays as it is.
fn decoded(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let hex = behind.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.filter(|_| first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}
