//! Logging in to MCP servers elsewhere.
//!
//! The core finds the place and keeps what comes of it. A person's program shows the page, hears
//! where it leads and says so here. What was kept never comes out.

use std::sync::Arc;

use wharf_ports::logins::{LoginAnswer, LoginControl, LoginEnd, LoginWay};
use wharf_vocab::{Code, Fault};
use wharf_wire::rest_v1::{BeginMcpLogin, EndMcpLogin, McpLoginPage, McpLoginState};

use super::mcp::control;
use super::table::{ApiCall, delete, post, routes};
use super::to_its_end;
use crate::access::Need;
use crate::answer::{self, Answer, invalid};
use crate::app::App;
use crate::body::SmallJsonBody;
use crate::from_wire;
use crate::params::Segments;

routes! {
    "mcp";
    /// Begins to log in at an MCP server elsewhere, and gives the page for the person to open. The
    /// page leads back to `redirect_uri`, or wants a code that the person types.
    begin_mcp_login => post("/v1/mcp/{server_id}/login", Need::ADMIN_EVERYWHERE, begin)
        .takes::<BeginMcpLogin>()
        .gives::<McpLoginPage>(200, "The page, and the state that names the login.")
        .missing("server")
        .fails(502, "The place where one logs in cannot be found or used.");
    /// Forgets what logins at an MCP server brought.
    forget_mcp_login => delete("/v1/mcp/{server_id}/login", Need::ADMIN_EVERYWHERE, forget)
        .says(204, "Nobody is logged in there any more.")
        .missing("server");
    /// Ends a login with what its page led back with. For a code that is typed, waits a while until
    /// that is done.
    end_mcp_login => post("/v1/mcp/{server_id}/login/finish", Need::ADMIN_EVERYWHERE, finish)
        .takes::<EndMcpLogin>()
        .gives::<McpLoginState>(200, "How far the login is.")
        .missing("server")
        .fails(502, "No token came of it.");
}

async fn begin(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    SmallJsonBody(request): SmallJsonBody<BeginMcpLogin>,
) -> Answer {
    let id = from_wire::server_id(&segments)?;
    let BeginMcpLogin { redirect_uri, device } = request.unwrap_or_default();
    let way = match (redirect_uri, device) {
        (Some(redirect_uri), false) => LoginWay::Redirect { redirect_uri },
        (None, true) => LoginWay::Device,
        (Some(_), true) => {
            return Err(invalid("redirect_uri", "A device is not led back anywhere.").into());
        }
        (None, false) => {
            return Err(invalid("redirect_uri", "Say where the page leads back to.").into());
        }
    };
    let begun = logins(&app)?.begin_login(caller, id, way).await?;
    answer::ok(&McpLoginPage {
        url: begun.url,
        state: begun.state,
        user_code: begun.user_code,
        expires_in_s: begun.expires_in_s,
    })
}

async fn finish(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    SmallJsonBody(request): SmallJsonBody<EndMcpLogin>,
) -> Answer {
    let id = from_wire::server_id(&segments)?;
    let EndMcpLogin { state, code, iss, error } = request.unwrap_or_default();
    let (logins, answer) = (logins(&app)?, LoginAnswer { state, code, issuer: iss, error });
    let end = to_its_end(async move { logins.end_login(caller, id, answer).await }).await?;
    answer::ok(&McpLoginState { done: end == LoginEnd::Done })
}

async fn forget(ApiCall { app, caller }: ApiCall, segments: Segments) -> Answer {
    let id = from_wire::server_id(&segments)?;
    let logins = logins(&app)?;
    to_its_end(async move { logins.forget_login(caller, id).await }).await?;
    answer::done()
}

/// Who lets people log in.
fn logins(app: &App) -> Result<Arc<dyn LoginControl>, Fault> {
    let none = || Fault::new(Code::RequestInvalid, "Nobody logs in to servers from this core.");
    control(app)?.logins().ok_or_else(none)
}
