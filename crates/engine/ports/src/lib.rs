//! wharf-ports
