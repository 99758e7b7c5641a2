//! Schemas that others wrote, compiled so that checking a value with them ends soon.
//!
//! Bytes say little about what a schema costs, so its parts are counted before it is compiled, and
//! how often they are asked of a value is counted before the value is checked. Regular expressions
//! run in linear time. What is not small is checked on a thread that may take its time.

mod cost;
mod graph;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use tokio::sync::Semaphore;
use wharf_vocab::limits::SCHEMA_BYTES_MAX;
use wharf_vocab::{Code, Fault};

use cost::Count;
use graph::Graph;

/// Parts that a schema may ask when each is asked wherever something leads to it.
const PARTS_MAX: u64 = 10_000;
/// Regular expressions in one schema.
const PATTERNS_MAX: u64 = 128;
/// Largest compiled regular expression.
const PATTERN_BYTES_MAX: usize = 256 * 1024;
/// What is checked at once, wherever that is.
const AT_ONCE_MAX: u64 = 10_000;
/// Places that do not fit that are told of one value.
const MISFITS_SHOWN_MAX: usize = 100;
/// Up to here it is said what does not fit; looking for the place can cost many times more.
const EXPLAINED_MAX: u64 = 500_000;
/// What is checked at all.
const CHECKED_MAX: u64 = 5_000_000;
/// Checks that run at the same time on threads of their own.
static SLOW_CHECKS: Semaphore = Semaphore::const_new(2);
/// How long a check may wait for its turn, and then for its end.
const PATIENCE: Duration = Duration::from_secs(10);

/// A schema, ready to check values.
#[derive(Debug)]
pub(crate) struct Schema {
    validator: Validator,
    graph: Graph,
}

/// What is wrong with a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SchemaFlaw {
    /// It has too many bytes or asks too much.
    TooLarge(String),
    /// It is not JSON Schema, or not of the kind that is taken here.
    Invalid(String),
}

impl SchemaFlaw {
    /// The flaw in a sentence that begins with whose it is.
    pub(crate) fn told(&self, code: Code, whose: &str) -> Fault {
        let (Self::TooLarge(what) | Self::Invalid(what)) = self;
        Fault::new(code, format!("{whose} {what}"))
    }

    /// The code for a schema that an agent sent.
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::TooLarge(_) => Code::ToolSchemaTooLarge,
            Self::Invalid(_) => Code::ToolSchemaInvalid,
        }
    }
}

/// Whether a schema is valid JSON Schema, small enough for the catalog and cheap enough to check
/// values with; otherwise the code that says which of it is not so.
pub fn check_schema(schema: &Value) -> Result<(), Code> {
    Schema::compile(schema).map(drop).map_err(|flaw| flaw.code())
}

/// How many regular expressions a schema has that may stand in the catalog; otherwise what is wrong
/// with it, as the end of a sentence that begins with whose it is.
pub fn schema_patterns(schema: &Value) -> Result<u64, String> {
    match Schema::compile(schema) {
        Ok(schema) => Ok(schema.patterns()),
        Err(SchemaFlaw::TooLarge(what) | SchemaFlaw::Invalid(what)) => Err(what),
    }
}

/// A value that does not fit: where, and why in words that never quote it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// The place, as a pointer.
    pub(crate) place: String,
    /// Why.
    pub(crate) why: String,
    /// All places that do not fit with why, this one first; not more than are shown.
    pub(crate) all: Vec<(String, String)>,
}

impl Misfit {
    fn of_all(why: &str) -> Self {
        let (place, why) = ("/".to_owned(), why.to_owned());
        Self { all: vec![(place.clone(), why.clone())], place, why }
    }
}

impl Schema {
    /// Compiles a schema that costs little enough.
    pub(crate) fn compile(schema: &Value) -> Result<Self, SchemaFlaw> {
        let size = schema.to_string().len();
        if size > SCHEMA_BYTES_MAX {
            let message = format!("is {size} bytes long; {SCHEMA_BYTES_MAX} are allowed.");
            return Err(SchemaFlaw::TooLarge(message));
        }
        let outside = || SchemaFlaw::Invalid("refers to something outside of itself.".to_owned());
        let graph = Graph::of(schema).ok_or_else(outside)?;
        if cost::of_schema(&graph).is_none_or(|parts| parts > PARTS_MAX) {
            let message = format!(
                "asks too much: with all references followed it may have {PARTS_MAX} parts."
            );
            return Err(SchemaFlaw::TooLarge(message));
        }
        if graph.patterns() > PATTERNS_MAX {
            let message = format!("has more than {PATTERNS_MAX} regular expressions.");
            return Err(SchemaFlaw::TooLarge(message));
        }
        // An engine that backtracks can be kept busy for ever by a short text.
        let patterns =
            PatternOptions::regex().size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX);
        let options = jsonschema::draft202012::options().with_pattern_options(patterns);
        let validator = options.build(schema).map_err(|error| {
            SchemaFlaw::Invalid(format!("is not valid JSON Schema: {}.", error.masked()))
        })?;
        Ok(Self { validator, graph })
    }

    /// How many regular expressions it has.
    pub(crate) fn patterns(&self) -> u64 {
        self.graph.patterns()
    }

    /// Checks a value. What costs more than a little is checked on a thread of its own, and what
    /// costs too much does not fit.
    pub(crate) async fn check(self: &Arc<Self>, value: Value) -> Result<(), CheckError> {
        self.check_but(value, BTreeSet::new()).await
    }

    /// Checks a value, except what stands under these of its names.
    pub(crate) async fn check_but(
        self: &Arc<Self>,
        value: Value,
        except: BTreeSet<String>,
    ) -> Result<(), CheckError> {
        if let Some(cost) = Count::of_value(&self.graph, &value, AT_ONCE_MAX) {
            return self.validate(&value, cost, &except).map_err(CheckError::Misfit);
        }
        let busy = |_| CheckError::Busy;
        let turn = SLOW_CHECKS.acquire();
        let turn = tokio::time::timeout(PATIENCE, turn).await.map_err(busy)?;
        let turn = turn.map_err(|_| CheckError::Busy)?;
        let schema = Arc::clone(self);
        let work = tokio::task::spawn_blocking(move || {
            // The turn is over when the work is, also when nobody waits for it any more.
            let _turn = turn;
            schema.check_slowly(&value, &except)
        });
        match tokio::time::timeout(PATIENCE, work).await {
            Ok(Ok(checked)) => checked.map_err(CheckError::Misfit),
            Ok(Err(_)) | Err(_) => Err(CheckError::Misfit(too_much())),
        }
    }

    fn check_slowly(&self, value: &Value, except: &BTreeSet<String>) -> Result<(), Misfit> {
        match Count::of_value(&self.graph, value, CHECKED_MAX) {
            Some(cost) => self.validate(value, cost, except),
            None => Err(too_much()),
        }
    }

    fn validate(&self, value: &Value, cost: u64, except: &BTreeSet<String>) -> Result<(), Misfit> {
        if cost > EXPLAINED_MAX {
            let fits = self.validator.is_valid(value);
            return if fits { Ok(()) } else { Err(Misfit::of_all("something does not fit")) };
        }
        let Err(first) = self.validator.validate(value) else { return Ok(()) };
        let mut error = first;
        if !except.is_empty() {
            let mut errors = self.validator.iter_errors(value);
            let Some(other) = errors.find(|error| !is_about(error, except)) else { return Ok(()) };
            error = other;
        }
        let (place, why) = told(&error);
        let others = self.validator.iter_errors(value);
        let others = others.filter(|error| except.is_empty() || !is_about(error, except));
        let mut all = vec![(place.clone(), why.clone())];
        for (place, why) in others.take(MISFITS_SHOWN_MAX).map(|error| told(&error)) {
            if all.len() < MISFITS_SHOWN_MAX && !all.contains(&(place.clone(), why.clone())) {
                all.push((place, why));
            }
        }
        Err(Misfit { place, why, all })
    }
}

/// Why a value was not found to fit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CheckError {
    /// It does not fit.
    Misfit(Misfit),
    /// Too many values are being checked.
    Busy,
}

impl CheckError {
    /// The fault it is to whoever sent the value.
    pub(crate) fn told(self, code: Code, what: &str) -> Fault {
        match self {
            Self::Misfit(Misfit { place, why, all }) => {
                // Of the whole value nobody needs to be told where it is.
                let at = if place == "/" { String::new() } else { format!(" at {place}") };
                let fault = Fault::new(code, format!("{what}{at}: {why}."));
                let error = |(path, message): (String, String)| serde_json::json!({ "path": path, "message": message });
                let all: Vec<Value> = all.into_iter().map(error).collect();
                let fault = fault.with("path", place);
                // Whoever fills in a form wants to know all that is wrong with it.
                if code == Code::AskAnswerInvalid { fault.with("errors", all) } else { fault }
            }
            Self::Busy => {
                let message = "Too many large values are being checked; try again later.";
                Fault::new(Code::CoreBusy, message)
            }
        }
    }
}

/// Where something does not fit, and why. The error's own text can quote the value; the masked
/// form never does.
fn told(error: &ValidationError<'_>) -> (String, String) {
    let path = error.instance_path().to_string();
    let place = if path.is_empty() { "/".to_owned() } else { path };
    let why = match error.kind() {
        ValidationErrorKind::Required { property } => {
            format!("`{}` is missing", property.as_str().unwrap_or_default())
        }
        _ => error.masked().to_string(),
    };
    (place, why)
}

/// Whether an error speaks of nothing but what stands under these names.
fn is_about(error: &ValidationError<'_>, names: &BTreeSet<String>) -> bool {
    if let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind()
        && error.instance_path().as_str().is_empty()
    {
        return unexpected.iter().all(|name| names.contains(name));
    }
    let path = error.instance_path().as_str();
    let first = path.strip_prefix('/').and_then(|rest| rest.split('/').next());
    first.is_some_and(|name| names.contains(&name.replace("~1", "/").replace("~0", "~")))
}

fn too_much() -> Misfit {
    Misfit::of_all("there is more of it than can be checked with this schema")
}
