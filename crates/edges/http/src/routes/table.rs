//! A route: its path, who answers which method, and what each of them needs.
//!
//! A method cannot be added without saying what it needs.

use std::sync::Arc;

use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodRouter, delete, get, patch, post, put};

use crate::access::Need;
use crate::app::App;

/// A path and what it answers to.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) path: &'static str,
    pub(crate) methods: MethodRouter<Arc<App>>,
    pub(crate) needs: Vec<(Method, Need)>,
    /// Whether GET opens a stream of events, for which a browser sends no header.
    pub(crate) streams: bool,
}

/// A path that answers to nothing yet.
pub(super) fn at(path: &'static str) -> Route {
    Route { path, methods: MethodRouter::new(), needs: Vec::new(), streams: false }
}

impl Route {
    pub(super) fn get<T: 'static>(self, need: Need, handler: impl Handler<T, Arc<App>>) -> Self {
        self.with(Method::GET, need, get(handler))
    }

    pub(super) fn post<T: 'static>(self, need: Need, handler: impl Handler<T, Arc<App>>) -> Self {
        self.with(Method::POST, need, post(handler))
    }

    pub(super) fn put<T: 'static>(self, need: Need, handler: impl Handler<T, Arc<App>>) -> Self {
        self.with(Method::PUT, need, put(handler))
    }

    pub(super) fn patch<T: 'static>(self, need: Need, handler: impl Handler<T, Arc<App>>) -> Self {
        self.with(Method::PATCH, need, patch(handler))
    }

    pub(super) fn delete<T: 'static>(self, need: Need, handler: impl Handler<T, Arc<App>>) -> Self {
        self.with(Method::DELETE, need, delete(handler))
    }

    /// The same route, whose GET opens a stream of events.
    pub(super) fn streams(self) -> Self {
        Self { streams: true, ..self }
    }

    /// What a method needs; `None` if the route does not take it.
    pub(crate) fn need(&self, method: &Method) -> Option<Need> {
        // What answers GET answers HEAD.
        let method = if method == Method::HEAD { &Method::GET } else { method };
        self.needs.iter().find(|(known, _)| known == method).map(|(_, need)| *need)
    }

    fn with(mut self, method: Method, need: Need, handler: MethodRouter<Arc<App>>) -> Self {
        self.methods = self.methods.merge(handler);
        self.needs.push((method, need));
        self
    }
}
