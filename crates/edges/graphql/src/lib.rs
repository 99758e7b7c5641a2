//! The GraphQL API: the same data and the same rights as REST, with subscriptions.
