//! wharf-store-sqlite
