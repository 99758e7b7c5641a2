//! wharf-wire
