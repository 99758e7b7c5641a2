//! It says of itself what only the owner may say.
