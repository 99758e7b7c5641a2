//! It lets large runs wait.
