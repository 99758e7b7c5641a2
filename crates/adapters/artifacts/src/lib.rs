//! Where artifacts are kept: in files of the core, served as S3, or in any S3.
