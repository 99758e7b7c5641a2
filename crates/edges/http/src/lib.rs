//! wharf-http
