//! Media types by the ending of a name: one table for the core and for tool servers, so that a file
//! has the same type whoever wrote it.

/// What is said of bytes that nothing is known of.
pub const UNKNOWN: &str = "application/octet-stream";

/// Endings and what they mean.
const TYPES: &[(&str, &str)] = &[
    ("aac", "audio/aac"),
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("css", "text/css; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("flac", "audio/flac"),
    ("gif", "image/gif"),
    ("glb", "model/gltf-binary"),
    ("gz", "application/gzip"),
    ("htm", "text/html; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("jsonl", "application/x-ndjson"),
    ("log", "text/plain; charset=utf-8"),
    ("m4a", "audio/mp4"),
    ("md", "text/markdown; charset=utf-8"),
    ("mkv", "video/x-matroska"),
    ("mov", "video/quicktime"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ndjson", "application/x-ndjson"),
    ("ogg", "audio/ogg"),
    ("parquet", "application/vnd.apache.parquet"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("toml", "application/toml"),
    ("txt", "text/plain; charset=utf-8"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
    ("zst", "application/zstd"),
];

/// The media type of a file of this name or path.
#[must_use]
pub fn of_name(name: &str) -> &'static str {
    let last = name.rsplit('/').next().unwrap_or_default();
    let ending = match last.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => ending.to_ascii_lowercase(),
        _ => return UNKNOWN,
    };
    match TYPES.binary_search_by_key(&ending.as_str(), |(known, _)| known) {
        Ok(index) => TYPES[index].1,
        Err(_) => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t027_the_ending_of_a_name_gives_the_media_type() {
        assert!(TYPES.is_sorted(), "it is searched by halves");
        for (name, expected) in [
            ("a.png", "image/png"),
            ("A.PNG", "image/png"),
            ("a.tar.gz", "application/gzip"),
            ("notes.txt", "text/plain; charset=utf-8"),
            ("noending", UNKNOWN),
            (".json", UNKNOWN),
            ("a.unknown", UNKNOWN),
            ("", UNKNOWN),
            ("/a/b.JSON", "application/json"),
            ("/video/cat.tar.gz", "application/gzip"),
            ("/a.json/b", UNKNOWN),
            ("/json", UNKNOWN),
            ("/.json", UNKNOWN),
            ("/a.", UNKNOWN),
        ] {
            assert_eq!(of_name(name), expected, "{name}");
        }
    }
}
