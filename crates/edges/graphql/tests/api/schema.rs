//! The schema as a file, which clients and reviewers read.

use std::path::Path;

#[test]
fn t045_the_schema_is_the_one_in_the_repository() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema.graphql");
    let made = format!(
        "# Made by `WHARF_BLESS=1 cargo test -p wharf-graphql --test api schema`; not edited.\n\n{}",
        wharf_graphql::schema_text()
    );
    if std::env::var_os("WHARF_BLESS").is_some() {
        std::fs::write(&path, &made).expect("writes the schema");
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "schema.graphql is not what the code says. If the change is meant, write it anew with \
         WHARF_BLESS=1 cargo test -p wharf-graphql --test api schema"
    );
}
