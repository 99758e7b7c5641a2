//! Outputs that are remembered.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::Instant;
use wharf_vocab::Fault;

use crate::{Data, Layer, Next, Within};

/// Remembers outputs, and gives them again for the same input instead of going on.
///
/// It remembers 1,000 outputs for five minutes, unless told otherwise; the one that was not used
/// for longest makes room for another. Faults are not remembered, and an output from memory comes
/// without progress. Two instances of an agent do not share what they remember, because their
/// configuration may differ.
///
/// ```
/// use std::time::Duration;
/// use wharf_sdk::layers::Cache;
/// use wharf_sdk::{Lane, Scope, Tool};
///
/// const WEATHER: Tool<String, String> = Tool::new("weather", "What the weather is like.");
///
/// let scope = Scope::root();
/// scope.layer(Lane::Outer, &WEATHER, Cache::new().size(100).age(Duration::from_secs(60)));
/// ```
pub struct Cache<O> {
    outputs: Arc<Mutex<Outputs<O>>>,
    size: usize,
    age: Duration,
}

struct Outputs<O> {
    by_input: HashMap<Arc<CacheKey>, CacheEntry<O>>,
    /// The inputs by when they were last used, the longest ago first.
    by_use: BTreeMap<u64, Arc<CacheKey>>,
    uses: u64,
}

/// A call that can be told from others: the tool, the agent's instance, and the input as JSON.
#[derive(PartialEq, Eq, Hash)]
struct CacheKey {
    tool: &'static str,
    instance: Option<u64>,
    input: String,
}

struct CacheEntry<O> {
    output: O,
    since: Instant,
    used: u64,
}

impl<O> Cache<O> {
    /// Remembers 1,000 outputs for five minutes.
    #[must_use]
    pub fn new() -> Self {
        let outputs = Outputs { by_input: HashMap::new(), by_use: BTreeMap::new(), uses: 0 };
        let outputs = Arc::new(Mutex::new(outputs));
        Self { outputs, size: 1_000, age: Duration::from_secs(300) }
    }

    /// Remembers at most so many outputs.
    #[must_use]
    pub fn size(mut self, outputs: usize) -> Self {
        self.size = outputs;
        self
    }

    /// Forgets outputs that are older than this.
    #[must_use]
    pub fn age(mut self, age: Duration) -> Self {
        self.age = age;
        self
    }

    /// How many outputs it remembers now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.outputs.lock().by_input.len()
    }

    /// Whether it remembers nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets everything.
    pub fn clear(&self) {
        let mut outputs = self.outputs.lock();
        outputs.by_use.clear();
        let forgotten = std::mem::take(&mut outputs.by_input);
        drop(outputs);
        drop(forgotten);
    }
}

impl<O: Clone> Outputs<O> {
    fn get(&mut self, input: &Arc<CacheKey>, age: Duration) -> Option<O> {
        let found = self.by_input.get_mut(input)?;
        if found.since.elapsed() >= age {
            self.forget(input);
            return None;
        }
        self.by_use.remove(&found.used);
        self.uses += 1;
        found.used = self.uses;
        self.by_use.insert(self.uses, Arc::clone(input));
        Some(found.output.clone())
    }

    fn put(&mut self, input: Arc<CacheKey>, output: O, size: usize) {
        self.forget(&input);
        while self.by_input.len() >= size {
            let Some((_, oldest)) = self.by_use.pop_first() else { return };
            self.by_input.remove(&oldest);
        }
        self.uses += 1;
        self.by_use.insert(self.uses, Arc::clone(&input));
        let remembered = CacheEntry { output, since: Instant::now(), used: self.uses };
        self.by_input.insert(input, remembered);
    }

    fn forget(&mut self, input: &Arc<CacheKey>) {
        if let Some(former) = self.by_input.remove(input) {
            self.by_use.remove(&former.used);
        }
    }
}

impl<I: Data, O: Data + Clone, P: Data> Layer<I, O, P> for Cache<O> {
    fn call(&self, input: I, next: Next<I, O, P>) -> BoxFuture<'static, Result<O, Fault>> {
        // By way of a value, so that the order of keys does not matter.
        let Ok(key) = serde_json::to_value(&input) else { return next.run(input) };
        let instance = next.cx().place().0.instance();
        let key = Arc::new(CacheKey { tool: next.tool(), instance, input: key.to_string() });
        let cache = self.clone();
        Box::pin(async move {
            let known = cache.outputs.lock().get(&key, cache.age);
            if let Some(output) = known {
                return Ok(output);
            }
            let output = next.run(input).await?;
            cache.outputs.lock().put(key, output.clone(), cache.size);
            Ok(output)
        })
    }
}

impl<O> Clone for Cache<O> {
    /// The same memory.
    fn clone(&self) -> Self {
        Self { outputs: Arc::clone(&self.outputs), size: self.size, age: self.age }
    }
}

impl<O> Default for Cache<O> {
    fn default() -> Self {
        Self::new()
    }
}

debug_only!(Cache<O>: size, age);
