//! wharf-journal
