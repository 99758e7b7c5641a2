//! wharf-testkit
