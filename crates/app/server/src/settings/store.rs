//! `[store]`: which database, and how it is reached.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use wharf_store_postgres::PostgresOptions;
use wharf_vocab::Fault;

use super::artifacts::read_secret;
use super::{STORE_DEFAULT, invalid};
use crate::Home;
use crate::database::Database;

/// `[store]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StoreTable {
    path: Option<PathBuf>,
    url: Option<String>,
    password_file: Option<PathBuf>,
    lanes: Option<usize>,
}

impl StoreTable {
    /// The file of the database, if it is one; `var` reads the environment.
    pub(super) fn file(
        &self,
        home: &Path,
        var: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<PathBuf>, Fault> {
        if var("WHARF_STORE_URL").is_some() || self.url.is_some() {
            return Ok(None);
        }
        let path = self.path.clone().unwrap_or_else(|| STORE_DEFAULT.into());
        Ok(Some(home.join(path)))
    }

    /// What was set; files lie relative to `home`. No message quotes an address, since a password
    /// may stand in it.
    pub(super) fn settle(
        &self,
        home: &Path,
        var: impl Fn(&str) -> Option<String>,
    ) -> Result<Database, Fault> {
        if let Some(path) = self.file(home, &var)? {
            for (name, set) in
                [("password_file", self.password_file.is_some()), ("lanes", self.lanes.is_some())]
            {
                if set {
                    return Err(invalid(format!("[store] {name} needs url.")));
                }
            }
            return Ok(Database::Sqlite(path));
        }
        if self.path.is_some() && self.url.is_some() {
            return Err(invalid("[store] takes path or url, and not both."));
        }
        let (url, named) = match var("WHARF_STORE_URL") {
            Some(url) => (url, "WHARF_STORE_URL"),
            None => (self.url.clone().unwrap_or_default(), "[store] url"),
        };
        let options = reached(home, (&url, named), self.password_file.as_deref(), var)?;
        if let Some(0 | 17..) = self.lanes {
            return Err(invalid("[store] lanes is a number from 1 to 16."));
        }
        let options = match self.lanes {
            Some(lanes) => options.with_lanes(lanes),
            None => options,
        };
        Ok(Database::Postgres(Box::new(options)))
    }
}

/// Reads an address and finds the password that belongs to it.
fn reached(
    home: &Path,
    (url, named): (&str, &str),
    password_file: Option<&Path>,
    var: impl Fn(&str) -> Option<String>,
) -> Result<PostgresOptions, Fault> {
    let password = match (var("WHARF_STORE_PASSWORD"), password_file) {
        (Some(password), _) => Some(password),
        (None, Some(path)) => Some(read_secret(&home.join(path))?),
        (None, None) => None,
    };
    let options = PostgresOptions::parse(url, password.as_deref());
    options.map_err(|wrong| invalid(format!("{named} is wrong: {wrong}.")))
}

/// A database that is named on the command line.
pub(crate) struct StoreTarget;

impl StoreTarget {
    /// Reads its address, as `[store]` is read.
    pub(crate) fn read(
        home: &Home,
        url: &str,
        password_file: Option<&Path>,
    ) -> Result<PostgresOptions, Fault> {
        // A file that is named on the command line lies where that is.
        let password_file = password_file.map(std::path::absolute).transpose();
        let password_file =
            password_file.map_err(|error| invalid(format!("--password-file: {error}.")))?;
        let var = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        reached(home.path(), (url, "--to"), password_file.as_deref(), var)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settle(text: &str, vars: &[(&str, &str)]) -> Result<Database, String> {
        let table: StoreTable = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        let var = |name: &str| {
            vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        table.settle(Path::new("/home"), var).map_err(|fault| fault.message)
    }

    fn place(database: &Database) -> String {
        database.server().expect("a server").place()
    }

    #[test]
    fn s007_the_database_is_a_file_unless_an_address_is_given() {
        let file = |path: &str| Database::Sqlite(path.into());
        assert_eq!(settle("", &[]), Ok(file("/home/wharf.db")));
        assert_eq!(settle("path = \"other.db\"", &[]), Ok(file("/home/other.db")));
        let url = "url = \"postgres://wharf@db.example.com/wharf\"\nlanes = 4";
        let found = settle(url, &[("WHARF_STORE_PASSWORD", "geheim")]).expect("fits");
        assert_eq!(place(&found), "db.example.com:5432/wharf");
        assert!(!format!("{found:?}").contains("geheim"), "{found:?}");
        let found = settle("", &[("WHARF_STORE_URL", "postgres://h/w")]).expect("fits");
        assert_eq!(place(&found), "h:5432/w", "the environment wins");
    }

    #[test]
    fn s007_mistakes_are_named_and_an_address_is_not_quoted() {
        for (text, said) in [
            ("url = \"mysql://a:geheim@h/w\"", "begins with postgres://"),
            ("url = \"postgres://a:geheim@h\"", "names no database"),
            ("url = \"postgres://h/w\"\nlanes = 0", "from 1 to 16"),
            ("url = \"postgres://h/w\"\npassword_file = \"none\"", "cannot be read"),
            ("url = \"postgres://h/w\"\npath = \"x.db\"", "not both"),
            ("password_file = \"x\"", "needs url"),
            ("uri = \"x\"", "unknown field"),
        ] {
            let error = settle(text, &[]).expect_err(text);
            assert!(error.contains(said) && !error.contains("geheim"), "{text}: {error}");
        }
    }
}
