//! One request, before it is sent: awaited it becomes what the core answers.

use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::{Method, RequestBuilder};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wharf_vocab::limits::PAGE_ITEMS_MAX;
use wharf_wire::rest_v1::Page;

use crate::client::Client;
use crate::error::Result;

/// How long an ordinary request may take.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A request whose answer is a `T`. Nothing is sent until it is awaited.
#[must_use = "a call is sent when it is awaited"]
#[derive(Debug)]
pub struct Call<T> {
    client: Client,
    request: RequestBuilder,
    answer: PhantomData<fn() -> T>,
}

impl<T> Call<T> {
    pub(crate) fn new(client: &Client, method: Method, path: &[&str]) -> Self {
        let request = client.request(method, path).timeout(REQUEST_TIMEOUT);
        Self { client: client.clone(), request, answer: PhantomData }
    }

    /// Asks in this world instead of the default one.
    pub fn world(self, world: Option<&str>) -> Self {
        self.query("world", world)
    }

    /// Adds a parameter, unless there is no value.
    pub fn query(mut self, key: &str, value: Option<&str>) -> Self {
        if let Some(value) = value {
            self.request = self.request.query(&[(key, value)]);
        }
        self
    }

    /// Sends this as the body.
    pub fn body(self, body: &impl Serialize) -> Self {
        self.with(|request| request.json(body))
    }

    /// Allows the request more or less time than the usual 30 seconds.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|request| request.timeout(timeout))
    }

    /// The same request, whose answer is given exactly as the core wrote it. It may hold fields
    /// that this version does not know.
    pub fn raw(self) -> Call<Value> {
        Call { client: self.client, request: self.request, answer: PhantomData }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(RequestBuilder) -> RequestBuilder) -> Self {
        self.request = change(self.request);
        self
    }
}

impl<T: DeserializeOwned + 'static> IntoFuture for Call<T> {
    type Output = Result<T>;
    type IntoFuture = BoxFuture<'static, Result<T>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let response = self.client.send(self.request).await?;
            self.client.read(response).await
        })
    }
}

/// A list that the core gives out page by page.
#[must_use = "a list is read by `all`, `first` or `page`"]
#[derive(Debug, Clone)]
pub struct List<T> {
    client: Client,
    path: Vec<String>,
    query: Vec<(&'static str, String)>,
    item: PhantomData<fn() -> T>,
}

impl<T> List<T> {
    pub(crate) fn new(client: &Client, path: &[&str]) -> Self {
        let path = path.iter().map(|part| (*part).to_owned()).collect();
        Self { client: client.clone(), path, query: Vec::new(), item: PhantomData }
    }

    /// Adds a parameter, unless there is no value.
    pub(crate) fn query(mut self, key: &'static str, value: Option<&str>) -> Self {
        self.query.extend(value.map(|value| (key, value.to_owned())));
        self
    }

    /// The same list, whose items are given exactly as the core wrote them.
    pub fn raw(self) -> List<Value> {
        List { client: self.client, path: self.path, query: self.query, item: PhantomData }
    }
}

impl<T: DeserializeOwned + 'static> List<T> {
    /// All items.
    pub async fn all(&self) -> Result<Vec<T>> {
        Ok(self.first(usize::MAX).await?.0)
    }

    /// At most so many items. The second value says whether there are more.
    pub async fn first(&self, most: usize) -> Result<(Vec<T>, bool)> {
        let (mut items, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let page = self.page(most - items.len(), cursor.as_deref()).await?;
            let went_on = !page.items.is_empty();
            items.extend(page.items);
            match page.next_cursor {
                Some(next) if items.len() < most && went_on => cursor = Some(next),
                next => {
                    let more = next.is_some() || items.len() > most;
                    items.truncate(most);
                    return Ok((items, more));
                }
            }
        }
    }

    /// One page of at most so many items, from the beginning or from a cursor of the page before.
    pub async fn page(&self, most: usize, cursor: Option<&str>) -> Result<Page<T>> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let call = Call::<Page<T>>::new(&self.client, Method::GET, &path);
        let call = call.with(|request| match self.query.is_empty() {
            true => request,
            false => request.query(&self.query),
        });
        let limit = most.min(PAGE_ITEMS_MAX).to_string();
        call.query("limit", Some(&limit)).query("cursor", cursor).await
    }
}
