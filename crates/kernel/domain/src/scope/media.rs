//! What kind of data a file has, going by its name.

/// The kind of data whose kind nobody knows.
pub const UNKNOWN: &str = "application/octet-stream";

const KINDS: &[(&str, &str)] = &[
    ("txt", "text/plain; charset=utf-8"),
    ("log", "text/plain; charset=utf-8"),
    ("md", "text/markdown; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("ndjson", "application/x-ndjson"),
    ("jsonl", "application/x-ndjson"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("toml", "application/toml"),
    ("pdf", "application/pdf"),
    ("zip", "application/zip"),
    ("gz", "application/gzip"),
    ("tar", "application/x-tar"),
    ("parquet", "application/vnd.apache.parquet"),
    ("wasm", "application/wasm"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("svg", "image/svg+xml"),
    ("mp3", "audio/mpeg"),
    ("wav", "audio/wav"),
    ("ogg", "audio/ogg"),
    ("flac", "audio/flac"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("mov", "video/quicktime"),
];

/// The kind of data that a file of this name has.
#[must_use]
pub fn of_name(name: &str) -> &'static str {
    let last = name.rsplit('/').next().unwrap_or_default();
    let Some((stem, extension)) = last.rsplit_once('.') else { return UNKNOWN };
    let found = KINDS.iter().find(|(known, _)| extension.eq_ignore_ascii_case(known));
    found.filter(|_| !stem.is_empty()).map_or(UNKNOWN, |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t027_the_extension_tells_the_kind_of_data() {
        assert_eq!(of_name("/a/b.JSON"), "application/json");
        assert_eq!(of_name("/video/cat.tar.gz"), "application/gzip");
        for plain in ["/a.json/b", "/json", "/.json", "/a."] {
            assert_eq!(of_name(plain), UNKNOWN, "{plain}");
        }
    }
}
