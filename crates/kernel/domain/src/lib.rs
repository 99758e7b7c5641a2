//! wharf-domain
