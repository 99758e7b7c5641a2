//! Answers of S3 servers, read leniently: names count, their namespaces do not.

use quick_xml::Reader;
use quick_xml::events::Event;

/// The texts of the elements directly within one element.
pub(super) type Record = Vec<(String, String)>;

/// Each element of this name, as the texts directly within it; `None` if this is no XML.
pub(super) fn records(xml: &str, element: &str) -> Option<Vec<Record>> {
    let mut reader = Reader::from_str(xml);
    let mut found = Vec::new();
    let mut within: Option<(usize, Record)> = None;
    let mut names: Vec<String> = Vec::new();
    let mut text = String::new();
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) => {
                let name = String::from_utf8_lossy(start.local_name().as_ref()).into_owned();
                if within.is_none() && name == element {
                    within = Some((names.len(), Vec::new()));
                }
                names.push(name);
                text.clear();
            }
            Event::Text(piece) => text.push_str(&piece.decode().ok()?),
            Event::CData(piece) => text.push_str(&piece.decode().ok()?),
            Event::GeneralRef(reference) => match reference.resolve_char_ref().ok()? {
                Some(character) => text.push(character),
                None => text.push_str(entity(&reference.decode().ok()?)),
            },
            Event::End(_) => {
                let name = names.pop()?;
                match within.take() {
                    Some((depth, record)) if names.len() == depth => found.push(record),
                    Some((depth, mut record)) => {
                        if names.len() == depth + 1 {
                            record.push((name, std::mem::take(&mut text)));
                        }
                        within = Some((depth, record));
                    }
                    None => {}
                }
                text.clear();
            }
            Event::Eof => return names.is_empty().then_some(found),
            _ => {}
        }
    }
}

/// The text of an element within a record.
pub(super) fn field<'a>(record: &'a Record, name: &str) -> Option<&'a str> {
    record.iter().find(|(key, _)| key == name).map(|(_, text)| text.as_str())
}

/// The text of one element directly within the outermost one of this name.
pub(super) fn text(xml: &str, outer: &str, name: &str) -> Option<String> {
    field(records(xml, outer)?.first()?, name).map(str::to_owned)
}

/// Text as it may stand in XML.
pub(super) fn escape(text: &str) -> String {
    quick_xml::escape::escape(text).into_owned()
}

fn entity(name: &str) -> &'static str {
    match name {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" => "\"",
        "apos" => "'",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"<?xml version="1.0"?><ListBucketResult xmlns="http://x/"><Name>b</Name>
        <Contents><Key>a &amp; b&#x20;c</Key><Owner><ID>o</ID></Owner><Size>7</Size></Contents>
        <Contents><Key>d</Key></Contents><IsTruncated>true</IsTruncated></ListBucketResult>"#;

    #[test]
    fn records_hold_what_is_directly_within_them() {
        let found = records(LIST, "Contents").expect("XML");
        assert_eq!(found.len(), 2);
        assert_eq!(field(&found[0], "Key"), Some("a & b c"));
        assert_eq!(field(&found[0], "Size"), Some("7"));
        assert_eq!(field(&found[0], "ID"), None);
        assert_eq!(text(LIST, "ListBucketResult", "IsTruncated").as_deref(), Some("true"));
    }

    #[test]
    fn what_is_no_xml_or_is_cut_off_is_not_guessed_at() {
        assert_eq!(records("no xml <", "Contents"), None);
        assert_eq!(records(&LIST[..LIST.len() - 30], "Contents"), None);
        assert_eq!(records("", "Contents"), Some(Vec::new()));
    }
}
