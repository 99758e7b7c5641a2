//! The PostgreSQL store keeps every promise of the port.

use wharf_contract::Subject;

use crate::support::Database;

async fn postgres() -> Option<Subject> {
    let database = Database::new()?;
    let store = database.open("core-a").await;
    Some(database.subject(&store))
}

wharf_contract::store_contract!(postgres);
