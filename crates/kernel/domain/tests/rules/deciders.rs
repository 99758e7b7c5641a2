//! Who may decide an ask, and how.

use serde_json::json;
use wharf_domain::grant::Rights;
use wharf_domain::permission::ToolPattern;
use wharf_domain::run::{NewAsk, RunInput};
use wharf_domain::{Audience, Caller, CallerKind, Resolution, RunEntry, Via};
use wharf_vocab::{AskKind, Code, RunStatus};

use crate::stage::{Plan, Stage, answered, denied, gate, person, resolve, token};

/// A run of `starter` that has asked something of the audience.
fn asking(starter: &Caller, kind: AskKind, audience: &str) -> Stage {
    let mut stage = Plan::of(|spec| spec.caller = starter.to_ref()).start();
    let audience = Audience::try_from(audience.to_owned()).expect("an audience");
    let ask = NewAsk { audience, ..stage.asks(kind, "k") };
    stage.take(&RunInput::RaiseAsk(ask));
    stage
}

#[test]
fn who_may_decide() {
    let machine = token("starter");
    let human = person("starter");
    let no = Some(Code::PermissionDenied);
    let cases = [
        // started by, audience, decided by, refused with
        (&machine, "person", person("p"), None),
        (&machine, "person", token("other"), no),
        (&machine, "person", token("starter"), no),
        (&machine, "person", Caller::owner(), None),
        (&machine, "any", person("p"), None),
        (&machine, "any", token("other"), None),
        (&machine, "any", token("starter"), no),
        (&machine, "seat:S-1", person("p"), None),
        (&machine, "seat:S-1", token("other"), no),
        (&machine, "seat:S-1", token("starter"), no),
        // A person may well decide about a run that they started themselves.
        (&human, "person", person("starter"), None),
        (&human, "any", person("starter"), None),
        (&human, "seat:S-1", person("starter"), None),
        (&human, "any", token("other"), None),
        (&human, "any", token("starter"), no),
    ];
    for (row, (starter, audience, by, refused)) in cases.into_iter().enumerate() {
        let ways = [(AskKind::Question, answered()), (AskKind::Approval, Resolution::ALLOW)];
        for (kind, resolution) in ways {
            let mut stage = asking(starter, kind, audience);
            let input = resolve(stage.open_ask(), resolution, by.clone());
            let code = stage.offer(&input).err().map(|fault| fault.code.as_str().to_owned());
            assert_eq!(code.as_deref(), refused.map(Code::as_str), "row {row}, {kind}");
            let status = if code.is_some() { RunStatus::Waiting } else { RunStatus::Running };
            assert_eq!(stage.status(), status, "row {row}, {kind}");
        }
    }
}

#[test]
fn a_question_is_answered_and_an_approval_is_allowed_or_denied() {
    let text = "let us talk".to_owned();
    let cases = [
        (Resolution::ALLOW, Some(AskKind::Approval)),
        (denied(), Some(AskKind::Approval)),
        (answered(), Some(AskKind::Question)),
        (Resolution::Answered { value: json!(null) }, Some(AskKind::Question)),
        (Resolution::Declined, Some(AskKind::Question)),
        (Resolution::Cancelled, Some(AskKind::Question)),
        (Resolution::OffScript { text }, Some(AskKind::Question)),
        // Only the core says these.
        (Resolution::Expired, None),
        (Resolution::Withdrawn, None),
    ];
    for (resolution, fits) in cases {
        for kind in [AskKind::Question, AskKind::Approval] {
            let mut stage = asking(&token("starter"), kind, "any");
            let input = resolve(stage.open_ask(), resolution.clone(), person("p"));
            if fits == Some(kind) {
                stage.take(&input);
            } else {
                let fault = stage.reject(&input);
                assert!(fault.is(Code::AskAnswerInvalid), "{kind}: {resolution:?}");
                assert_eq!(stage.status(), RunStatus::Waiting);
            }
        }
    }
}

#[test]
fn nobody_decides_for_the_core_about_the_approval_of_dispatch() {
    for resolution in [Resolution::Expired, Resolution::Withdrawn, answered()] {
        let mut stage = Plan::of(|spec| spec.gate = gate()).start();
        let input = resolve(stage.open_ask(), resolution, Caller::owner());
        assert!(stage.reject(&input).is(Code::AskAnswerInvalid));
        assert_eq!(stage.status(), RunStatus::Waiting);
    }
}

#[test]
fn an_ask_is_decided_once() {
    let mut stage = asking(&token("starter"), AskKind::Question, "any");
    stage.take(&stage.question("keeps the run waiting"));
    let ask_id = stage.open_ask();
    stage.take(&resolve(ask_id.clone(), answered(), token("first")));
    for (resolution, by) in [(answered(), token("first")), (Resolution::Declined, person("p"))] {
        assert!(stage.reject(&resolve(ask_id.clone(), resolution, by)).is(Code::AskDecided));
    }
    let (_, by) = stage.run.asks[0].ask.resolved.clone().expect("decided");
    assert_eq!(by, "grant:first", "the first decision stands");
}

#[test]
fn an_answer_after_the_deadline_comes_too_late() {
    let mut stage = asking(&token("starter"), AskKind::Question, "any");
    let deadline = stage.run.asks[0].ask.spec.deadline;
    stage.now = deadline;
    let late = resolve(stage.open_ask(), answered(), person("p"));
    assert!(stage.reject(&late).is(Code::AskExpired));
    stage.take(&RunInput::Tick);
    assert!(stage.reject(&late).is(Code::AskDecided));
}

/// A token that was narrowed from others, the oldest first; a person's own is not among them.
fn narrowed(links: &[&str]) -> Caller {
    let last = links.last().expect("at least one");
    let links = links.iter().map(|link| link.parse().expect("a grant id")).collect();
    Caller { links, ..Caller::token(last, Rights::all()) }
}

/// The agent `dev.agent` while it works on a run that `above` started.
fn agent(above: &Caller) -> Caller {
    let id = "dev.agent".parse().expect("an agent id");
    Caller::agent(&id, &above.to_ref(), vec![ToolPattern::any()])
}

#[test]
fn nobody_in_a_runs_own_chain_decides_about_it_but_people_do() {
    let (human, robot) = (person("human"), token("robot"));
    let mcp = Caller { kind: CallerKind::Mcp, ..token("mcp") };
    let no = Some(Code::PermissionDenied);
    let cases = [
        // started by, decided by, an approval is refused with, a question is refused with
        ("the person who started it", &human, human.clone(), None, None),
        ("the token that started it", &robot, robot.clone(), no, no),
        ("narrowed from the starter", &robot, narrowed(&["robot", "n1"]), no, no),
        ("what the starter was narrowed from", &narrowed(&["robot", "n1"]), robot.clone(), no, no),
        ("narrowed from another", &robot, narrowed(&["other", "n1"]), None, None),
        ("a sibling below one person", &narrowed(&["n1"]), narrowed(&["n2"]), None, None),
        ("the agent that asked", &agent(&human), agent(&human), no, no),
        ("an agent further down", &agent(&human), agent(&agent(&human)), no, no),
        ("the token above the agent", &agent(&robot), robot.clone(), no, no),
        ("the person above the agent", &agent(&human), human.clone(), None, None),
        ("an MCP client", &robot, mcp.clone(), no, None),
        ("the MCP client that started it", &mcp, mcp.clone(), no, None),
    ];
    for (who, starter, by, approval, question) in cases {
        let ways = [
            (AskKind::Question, answered(), question),
            (AskKind::Approval, Resolution::ALLOW, approval),
        ];
        for (kind, resolution, refused) in ways {
            let mut stage = asking(starter, kind, "any");
            let input = resolve(stage.open_ask(), resolution, by.clone());
            let code = stage.offer(&input).err().map(|fault| fault.code.as_str().to_owned());
            assert_eq!(code.as_deref(), refused.map(Code::as_str), "{who}, {kind}");
        }
    }
}

/// An MCP client of this chain of grants, the oldest first.
fn mcp(links: &[&str]) -> Caller {
    Caller { kind: CallerKind::Mcp, ..narrowed(links) }
}

/// Who is refused an answer to a question of this run that whoever of `by` executes.
fn refused(starter: &Caller, audience: &str, executors: &[&str], by: Caller) -> Option<String> {
    let mut stage = Plan::of(|spec| spec.caller = starter.to_ref()).start();
    let audience = Audience::try_from(audience.to_owned()).expect("an audience");
    let executors = executors.iter().map(|link| link.parse().expect("a grant id")).collect();
    let ask = NewAsk { audience, by: executors, ..stage.asks(AskKind::Question, "k") };
    stage.take(&RunInput::RaiseAsk(ask));
    let input = resolve(stage.open_ask(), answered(), by);
    stage.offer(&input).err().map(|fault| fault.code.as_str().to_owned())
}

#[test]
fn m034_an_mcp_client_answers_exactly_its_own_questions() {
    let no = Some(Code::PermissionDenied);
    let client = mcp(&["client"]);
    let below = mcp(&["client", "n1"]);
    let as_person = Caller { kind: CallerKind::Mcp, ..person("owner") };
    let behind_person = Caller { person: false, links: as_person.behind(), ..as_person };
    let cases = [
        // started by, audience, executed by, answered by, refused with
        ("its own", &client, "any", &[][..], client.clone(), None),
        ("of a grant below it", &below, "any", &[], client.clone(), None),
        ("of an agent in its run", &agent(&client), "any", &[], client.clone(), None),
        ("further down", &agent(&agent(&client)), "any", &[], client.clone(), None),
        ("for a person", &client, "person", &[], client.clone(), no),
        ("for a seat", &client, "seat:S-1", &[], client.clone(), no),
        ("of the grant above it", &client, "any", &[], below.clone(), no),
        ("not as an MCP client", &client, "any", &[], narrowed(&["client"]), no),
        ("of a sibling", &mcp(&["client", "n2"]), "any", &[], below.clone(), no),
        ("of a person", &person("client"), "any", &[], client.clone(), no),
        ("the owner at the MCP door", &behind_person, "any", &[], behind_person.clone(), None),
        ("of a run that it executes", &token("other"), "any", &["client"], client.clone(), no),
        (
            "of an agent it executes",
            &agent(&token("other")),
            "any",
            &["client"],
            client.clone(),
            no,
        ),
    ];
    for (who, starter, audience, executors, by, expected) in cases {
        let found = refused(starter, audience, executors, by);
        assert_eq!(found.as_deref(), expected.map(Code::as_str), "{who}");
    }
}

#[test]
fn m034_the_way_in_is_written_down() {
    let ways = [(mcp(&["client"]), Some(Via::Mcp)), (person("p"), None), (token("other"), None)];
    for (by, via) in ways {
        let mut stage = asking(&mcp(&["client"]), AskKind::Question, "any");
        let decision = stage.take(&resolve(stage.open_ask(), answered(), by));
        let entry = decision.entries.iter().find_map(|entry| match entry {
            RunEntry::AskResolved(resolved) => Some(resolved.via),
            _ => None,
        });
        assert_eq!(entry, Some(via));
        let told = decision.audit.iter().filter_map(|record| record.facts.get("via"));
        assert_eq!(told.count(), usize::from(via.is_some()));
    }
}
