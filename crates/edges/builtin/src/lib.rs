//! wharf-builtin
