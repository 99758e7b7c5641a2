//! Looking up what a request's references stand for.
