//! wharf-engine
