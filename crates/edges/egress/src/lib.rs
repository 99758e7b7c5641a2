//! The way out for fenced processes: a proxy that lets through only approved hosts.
