//! wharf-server
