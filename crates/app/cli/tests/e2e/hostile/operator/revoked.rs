//! It goes on when its token is gone.
