//! One user at work: takes steps from the script at the scheduled times, performs them on the session, and records the
//! results.

use super::clocks::now;
use super::control::{UserExit, WorkerLoadPoint};
use super::exchanges::CommandSource;
use super::plan::OnFailure;
use super::recorder::Completed;
use super::result::{LoadPointEnd, ScriptPass, waited};
use super::schedule::Appointments;
use super::session::{Performed, ServerSession, SessionFactory};
use crate::workload::{Action, HandleSlot, PassPosition, Script, ScriptStep};
use smbscope_client::ClientError;
use smbscope_model::{Command, FlowId};
use smbscope_wire::status::NtStatus;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Steps without command until a user yields. They take no time, so the user would loop forever.
const STEPS_WITHOUT_COMMAND_MAX: u32 = 1_000;

const LEFT_BEHIND: &str = ": another workload left it in this directory; remove it with bench clean";

pub(crate) struct ScriptedSession<T> {
    /// Counted from 0 over all sessions of all users.
    pub(crate) number: u32,
    script: Box<dyn Script>,
    used: bool,
    session: Option<T>,
    trouble: Option<String>,
    origins: Vec<CommandSource>,
    paths: Vec<(HandleSlot, Arc<str>)>,
    appointments: Option<Appointments>,
    waiting: Option<Instant>,
    /// Number of completed passes, and the current pass once its first command was sent.
    passes: Option<u32>,
    pass: Option<ScriptPass>,
    /// Passes left until the user is done, if there is a limit.
    passes_left: Option<u32>,
    spans: Vec<(Instant, Instant)>,
}

/// Progress of a user's work in a load point.
struct WorkProgress {
    /// Time for which the next operation is due, until its first step begins.
    due: Option<Instant>,
    current: Option<CurrentOperation>,
    steps_without_command: u32,
    /// End of the latest command or pause.
    time: Instant,
}

/// Parts of a [`ScriptedSession`] that perform a step, while the step borrows the script.
struct StepPerformer<'a, T> {
    number: u32,
    session: &'a mut T,
    origins: &'a mut [CommandSource],
    paths: &'a mut Vec<(HandleSlot, Arc<str>)>,
    appointments: &'a mut Appointments,
    waiting: &'a mut Option<Instant>,
    has_passes: bool,
    pass: &'a mut Option<ScriptPass>,
    spans: &'a mut Vec<(Instant, Instant)>,
}

struct CurrentOperation {
    operation: usize,
    intended: Instant,
    span: Option<(Instant, Instant)>,
    unexpected: Option<NtStatus>,
}

impl<T: ServerSession> ScriptedSession<T> {
    pub(crate) fn new(number: u32, script: Box<dyn Script>) -> ScriptedSession<T> {
        ScriptedSession {
            number,
            passes: script.passes(),
            script,
            used: false,
            session: None,
            trouble: None,
            origins: Vec::new(),
            paths: Vec::new(),
            appointments: None,
            waiting: None,
            pass: None,
            passes_left: None,
            spans: Vec::new(),
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.session.is_some()
    }

    pub(crate) async fn connect<C: SessionFactory<Session = T>>(&mut self, point: &WorkerLoadPoint<C>) {
        let Ok(_turn) = point.turns.acquire().await else { return };
        if point.control.is_over() {
            self.trouble = Some("the load point ended before there was a session".to_owned());
            return;
        }
        let began = now();
        match point.connector.connect().await {
            Ok(mut session) => {
                let connections = 0..session.connections();
                let mut commands: Vec<Command> = Vec::new();
                for connection in connections.clone() {
                    commands.extend(session.samples(connection).drain(..).map(|sample| sample.command));
                }
                if std::mem::replace(&mut self.used, true) {
                    self.script.restart();
                    self.passes = self.script.passes();
                }
                let at = now();
                point.recorder.borrow_mut().connected(at, at - began, &commands);
                self.paths.clear();
                self.origins = connections
                    .map(|connection| CommandSource::new(FlowId(point.next_flow()), session.identity(connection)))
                    .collect();
                self.session = Some(session);
                self.trouble = None;
            }
            Err(error) => {
                let reason = error.to_string();
                self.script.abandon();
                point.recorder.borrow_mut().failure(&reason);
                if is_hopeless(&error) {
                    point.control.finish(LoadPointEnd::Failed(reason.clone()), now());
                }
                self.trouble = Some(reason);
            }
        }
    }

    /// Performs the script's one-time set-up. Nothing is counted, and a failure ends the session.
    pub(crate) async fn set_up<C: SessionFactory<Session = T>>(&mut self, point: &WorkerLoadPoint<C>) {
        while let Some(session) = &mut self.session
            && self.script.sets_up()
            && !point.control.is_over()
        {
            let Some(step) = self.script.next() else { return };
            subject(&step.action, &mut self.paths);
            let connection = session.connection();
            let line = step.line.map_or_else(String::new, |line| format!(", line {line}"));
            let mut is_refused = false;
            let reason = match session.perform(&step.action).await {
                Ok(performed) => unexpected(&step, &performed).map(|status| {
                    is_refused = true;
                    let why = if status == NtStatus::OBJECT_NAME_COLLISION { LEFT_BEHIND } else { "" };
                    format!("setting up{line}: {status}{why}")
                }),
                Err(error) => Some(format!("setting up{line}: {error}")),
            };
            session.samples(connection).clear();
            if let Some(reason) = reason {
                // Retries and other users would get the same answer. A broken session can be replaced.
                if is_refused {
                    point.control.finish(LoadPointEnd::Failed(reason.clone()), now());
                }
                let mut recorder = point.recorder.borrow_mut();
                recorder.failure(&reason);
                recorder.sessions(now(), -1);
                self.session = None;
                self.trouble = Some(reason);
            }
        }
    }

    /// Works until the load point ends, the script ends, or the session is lost for good.
    pub(crate) async fn work<C: SessionFactory<Session = T>>(&mut self, point: &WorkerLoadPoint<C>) -> UserExit {
        self.appointments = Some(point.appointments(self.number));
        self.passes_left = point.plan.limits.passes;
        if let Some(pass) = &mut self.pass {
            pass.carried_over();
        }
        let time = self.wait_until(point, point.begin.get()).await;
        let mut work = WorkProgress { due: None, current: None, steps_without_command: 0, time };
        loop {
            if self.script.passes() != self.passes && self.pass_ended(point) {
                return UserExit::Done;
            }
            if let ControlFlow::Break(exit) = self.advance(point, &mut work).await {
                return exit;
            }
        }
    }

    /// Performs the next step, at the appointed time if it begins an operation.
    async fn advance<C: SessionFactory<Session = T>>(
        &mut self,
        point: &WorkerLoadPoint<C>,
        work: &mut WorkProgress,
    ) -> ControlFlow<UserExit> {
        if self.session.is_none() {
            if let Some(left) = reconnect(self, point).await {
                return ControlFlow::Break(left);
            }
            work.current = None;
            work.time = now();
        }
        // Once taken from the script, a step must be performed: the next load point continues after it.
        if work.current.is_none() && work.due.is_none() {
            work.due = self.appointment(point, &mut work.time).await;
            match work.due {
                None => return ControlFlow::Break(UserExit::Over),
                Some(_) if self.session.is_none() => return ControlFlow::Continue(()),
                Some(_) => {}
            }
        }
        self.perform_next(point, work).await
    }

    async fn perform_next<C: SessionFactory<Session = T>>(
        &mut self,
        point: &WorkerLoadPoint<C>,
        work: &mut WorkProgress,
    ) -> ControlFlow<UserExit> {
        let Some((script, mut performer)) = self.split() else { return ControlFlow::Break(UserExit::Over) };
        let Some(step) = script.next() else { return ControlFlow::Break(UserExit::Done) };
        if let Action::Think(pause) = step.action {
            return self.think(point, work, pause).await;
        }
        if let Action::Await { thread, position } = step.action {
            return self.wait_for_thread(point, work, (thread, position)).await;
        }
        work.begin(&step, performer.appointments, point.plan.schedule.is_open());
        let (result, span) = performer.perform(point, &step, work.time).await;
        work.pass_time(point, span).await?;
        match result {
            Ok(performed) => {
                if let Some(ended) = work.add(&step, span, &performed) {
                    count(point, &ended.completed(), work.time);
                    performer.appointments.ended(work.time);
                }
            }
            Err(error) => self.lost(point, &error, work.time),
        }
        ControlFlow::Continue(())
    }

    /// Separates the script, which a step borrows, from what performs the step.
    fn split(&mut self) -> Option<(&mut dyn Script, StepPerformer<'_, T>)> {
        let performer = StepPerformer {
            number: self.number,
            session: self.session.as_mut()?,
            origins: &mut self.origins,
            paths: &mut self.paths,
            appointments: self.appointments.as_mut()?,
            waiting: &mut self.waiting,
            has_passes: self.passes.is_some(),
            pass: &mut self.pass,
            spans: &mut self.spans,
        };
        Some((&mut *self.script, performer))
    }

    async fn think<C: SessionFactory<Session = T>>(
        &mut self,
        point: &WorkerLoadPoint<C>,
        work: &mut WorkProgress,
        pause: Duration,
    ) -> ControlFlow<UserExit> {
        // In an open loop, the schedule determines the pause between operations.
        if !pause.is_zero() && (work.current.is_some() || !point.plan.schedule.is_open()) {
            work.time = self.wait_until(point, work.time + pause).await;
        } else {
            work.steps_without_command += 1;
        }
        if work.current.is_none() && point.is_over(work.time) {
            return ControlFlow::Break(UserExit::Over);
        }
        work.check_progress(point)
    }

    async fn wait_for_thread<C: SessionFactory<Session = T>>(
        &mut self,
        point: &WorkerLoadPoint<C>,
        work: &mut WorkProgress,
        (thread, position): (u32, PassPosition),
    ) -> ControlFlow<UserExit> {
        if let Some(progress) = self.script.progress() {
            let reached = async {
                tokio::select! {
                    biased;
                    () = progress.wait(thread, position) => {}
                    () = point.ended() => {}
                }
            };
            self.rest_until(point, reached).await;
            work.time = now();
        }
        work.steps_without_command += 1;
        if work.current.is_none() && point.is_over(work.time) {
            return ControlFlow::Break(UserExit::Over);
        }
        work.check_progress(point)
    }

    fn lost<C: SessionFactory<Session = T>>(&mut self, point: &WorkerLoadPoint<C>, error: &ClientError, time: Instant) {
        let reason = error.to_string();
        self.script.abandon();
        let mut recorder = point.recorder.borrow_mut();
        recorder.failure(&reason);
        recorder.sessions(time, -1);
        if point.window.get().contains(time) {
            point.control.failed(&reason, time);
        }
        if let Some(appointments) = &mut self.appointments {
            appointments.ended(time);
        }
        // The end of the current pass is unknown, and the script starts over.
        self.passes = self.script.passes();
        let cut_off = self.pass.take().and_then(|pass| pass.job(&point.window.get()));
        recorder.jobs().unfinished += u64::from(cut_off.is_some());
        self.session = None;
        self.trouble = Some(reason);
    }

    /// Records a completed pass. Returns true if it was the last one for this load point.
    fn pass_ended<C: SessionFactory<Session = T>>(&mut self, point: &WorkerLoadPoint<C>) -> bool {
        self.passes = self.script.passes();
        let Some(job) = self.pass.take().and_then(|pass| pass.job(&point.window.get())) else { return false };
        point.recorder.borrow_mut().jobs().completed(job);
        self.passes_left = self.passes_left.map(|left| left.saturating_sub(1));
        self.passes_left == Some(0)
    }

    async fn wait_until<C: SessionFactory<Session = T>>(
        &mut self,
        point: &WorkerLoadPoint<C>,
        time: Instant,
    ) -> Instant {
        self.rest_until(point, point.wait_until(time)).await
    }

    /// Handles requests of the server until `event` completes, so that idle users do not hold oplocks and leases that
    /// others want.
    pub(crate) async fn rest_until<C: SessionFactory<Session = T>, O>(
        &mut self,
        point: &WorkerLoadPoint<C>,
        event: impl Future<Output = O>,
    ) -> O {
        let mut event = pin!(event);
        loop {
            // Only the wait is cancelled by `select!`; handling a request always completes.
            let disturbed = async {
                match &self.session {
                    Some(session) => session.disturbed().await,
                    None => std::future::pending().await,
                }
            };
            let disturbed = tokio::select! {
                biased;
                happened = &mut event => return happened,
                disturbed = disturbed => disturbed,
            };
            if let Err(error) = self.attend(point, disturbed).await {
                self.lost(point, &error, now());
            }
        }
    }

    async fn attend<C: SessionFactory<Session = T>>(
        &mut self,
        point: &WorkerLoadPoint<C>,
        disturbed: Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        disturbed?;
        let Some(session) = &mut self.session else { return Ok(()) };
        let result = session.attend().await;
        let mut recorder = point.recorder.borrow_mut();
        for (connection, origin) in self.origins.iter_mut().enumerate() {
            origin.is_about(None);
            recorder.take(session.samples(connection), None, origin);
        }
        result
    }

    async fn appointment<C: SessionFactory<Session = T>>(
        &mut self,
        point: &WorkerLoadPoint<C>,
        time: &mut Instant,
    ) -> Option<Instant> {
        let window = point.window.get();
        let due = self.appointments.as_ref()?.next();
        if due > *time {
            *time = self.wait_until(point, due).await;
        }
        if due >= window.end || point.is_over(*time) {
            return None;
        }
        let intended = if point.plan.schedule.is_open() { due } else { *time };
        (!window.contains(intended) || point.control.may_begin(*time)).then_some(due)
    }

    pub(crate) fn leave<C: SessionFactory<Session = T>>(
        &mut self,
        point: &WorkerLoadPoint<C>,
        left: Option<&UserExit>,
    ) {
        let mut recorder = point.recorder.borrow_mut();
        if let Some(mut appointments) = self.appointments.take()
            && left != Some(&UserExit::Done)
        {
            let window = point.window.get();
            let until = point.control.why().map_or(window.end, |(_, at)| at.min(window.end));
            recorder.not_begun(appointments.missed(window.start, until));
        }
        // The pass continues in the next load point and counts in neither.
        let cut_off = self.pass.as_ref().and_then(|pass| pass.job(&point.window.get()));
        recorder.jobs().unfinished += u64::from(cut_off.is_some());
        if let Some(since) = self.waiting.take() {
            recorder.given_up(since);
            drop(recorder);
            self.give_up(point);
        }
    }

    /// Drops the session: a response is still outstanding or the session is incomplete, so it can't be used.
    pub(crate) fn give_up<C: SessionFactory<Session = T>>(&mut self, point: &WorkerLoadPoint<C>) {
        let reason = "no answer until the load point ended, nor in the grace period after it";
        self.script.abandon();
        let mut recorder = point.recorder.borrow_mut();
        recorder.failure(reason);
        if self.session.take().is_some() {
            recorder.sessions(now(), -1);
        }
        self.trouble = Some(reason.to_owned());
    }

    pub(crate) async fn disconnect(&mut self, grace: Duration) {
        if let Some(mut session) = self.session.take() {
            let goodbye = async {
                session.close_all().await?;
                session.disconnect().await
            };
            // The server notices the closed connection in any case.
            let _ = tokio::time::timeout(grace, goodbye).await;
        }
    }
}

impl<T: ServerSession> StepPerformer<'_, T> {
    /// Performs a step and records its commands. Also returns the times from the first to the last one.
    async fn perform<C: SessionFactory<Session = T>>(
        &mut self,
        point: &WorkerLoadPoint<C>,
        step: &ScriptStep<'_>,
        time: Instant,
    ) -> (Result<Performed, ClientError>, Option<(Instant, Instant)>) {
        let connection = self.session.connection();
        self.origins[connection].is_about(subject(&step.action, self.paths));
        *self.waiting = Some(time);
        let result = self.session.perform(&step.action).await;
        *self.waiting = None;
        let span = self.record(point, connection, result.as_ref().ok());
        (result, span)
    }

    fn record<C: SessionFactory<Session = T>>(
        &mut self,
        point: &WorkerLoadPoint<C>,
        connection: usize,
        performed: Option<&Performed>,
    ) -> Option<(Instant, Instant)> {
        let samples = self.session.samples(connection);
        let waited = if self.has_passes { waited(samples, self.spans) } else { Duration::ZERO };
        let span = point.recorder.borrow_mut().take(samples, performed, &mut self.origins[connection]);
        if self.has_passes
            && let Some((first, _)) = span
        {
            let started = || point.recorder.borrow().timestamp(first);
            let pass = self.pass.get_or_insert_with(|| ScriptPass::new(self.number, first, started()));
            pass.add(span, waited, performed);
        }
        span
    }
}

/// Counts a completed operation, and checks the load point's limits.
fn count<C: SessionFactory>(point: &WorkerLoadPoint<C>, completed: &Completed, time: Instant) {
    let mut recorder = point.recorder.borrow_mut();
    recorder.live.operations += 1;
    recorder.live.unexpected += u64::from(completed.unexpected.is_some());
    if recorder.completed(completed) {
        match completed.unexpected {
            None => point.control.succeeded(),
            Some(status) => point.control.failed(&status.to_string(), time),
        }
    }
}

/// Ends a user whose script does no work: it would starve its worker.
fn does_nothing<C: SessionFactory>(point: &WorkerLoadPoint<C>) -> UserExit {
    let reason = format!("{STEPS_WITHOUT_COMMAND_MAX} steps of the script sent no command");
    point.recorder.borrow_mut().failure(&reason);
    UserExit::Failed(reason)
}

/// Reconnects as the plan says. Returns the reason if the user's work ends instead.
async fn reconnect<C: SessionFactory>(
    user: &mut ScriptedSession<C::Session>,
    point: &WorkerLoadPoint<C>,
) -> Option<UserExit> {
    loop {
        match point.plan.on_failure {
            OnFailure::End => return Some(UserExit::Failed(user.trouble.clone().unwrap_or_default())),
            OnFailure::Reconnect { delay } => {
                let time = point.wait_until(now() + delay).await;
                if point.is_over(time) {
                    return Some(UserExit::Over);
                }
            }
        }
        user.connect(point).await;
        user.set_up(point).await;
        if user.is_connected() {
            return None;
        }
    }
}

impl WorkProgress {
    /// Begins an operation with its first counted step.
    fn begin(&mut self, step: &ScriptStep<'_>, appointments: &mut Appointments, is_open: bool) {
        if self.current.is_none()
            && let Some(operation) = step.operation
            && let Some(due) = self.due.take()
        {
            let intended = if is_open { due } else { self.time };
            appointments.begun();
            self.current = Some(CurrentOperation { operation, intended, span: None, unexpected: None });
        }
    }

    /// Adds a step to the current operation. Returns the operation if this completes it.
    fn add(
        &mut self,
        step: &ScriptStep<'_>,
        span: Option<(Instant, Instant)>,
        performed: &Performed,
    ) -> Option<CurrentOperation> {
        self.current.as_mut()?.add(span, unexpected(step, performed));
        self.current.take_if(|_| step.completes)
    }

    /// Advances the time past a step's commands. Yields to other users if it sent none.
    async fn pass_time<C: SessionFactory>(
        &mut self,
        point: &WorkerLoadPoint<C>,
        span: Option<(Instant, Instant)>,
    ) -> ControlFlow<UserExit> {
        if let Some((_, last)) = span {
            self.time = last;
            self.steps_without_command = 0;
            return ControlFlow::Continue(());
        }
        self.steps_without_command += 1;
        self.check_progress(point)?;
        tokio::task::yield_now().await;
        self.time = now();
        ControlFlow::Continue(())
    }

    fn check_progress<C: SessionFactory>(&self, point: &WorkerLoadPoint<C>) -> ControlFlow<UserExit> {
        if self.steps_without_command >= STEPS_WITHOUT_COMMAND_MAX {
            return ControlFlow::Break(does_nothing(point));
        }
        ControlFlow::Continue(())
    }
}

impl CurrentOperation {
    fn add(&mut self, span: Option<(Instant, Instant)>, unexpected: Option<NtStatus>) {
        self.span = match (self.span, span) {
            (Some((first, _)), Some((_, last))) => Some((first, last)),
            (known, new) => known.or(new),
        };
        self.unexpected = self.unexpected.or(unexpected);
    }

    fn completed(&self) -> Completed {
        let CurrentOperation { operation, intended, span, unexpected } = *self;
        Completed { operation, intended, span, unexpected }
    }
}

fn unexpected(step: &ScriptStep<'_>, performed: &Performed) -> Option<NtStatus> {
    let status = performed.status;
    (!step.expected.is_met_by(status)).then_some(status)
}

/// Returns the path that an action refers to, and keeps track of the paths of open files.
fn subject(action: &Action<'_>, paths: &mut Vec<(HandleSlot, Arc<str>)>) -> Option<Arc<str>> {
    match *action {
        Action::Open { slot, path, .. } => {
            let path: Arc<str> = path.into();
            paths.push((slot, path.clone()));
            Some(path)
        }
        Action::Close(slot) => {
            let i = paths.iter().rposition(|(open, _)| *open == slot)?;
            Some(paths.remove(i).1)
        }
        Action::Read { slot, .. }
        | Action::Write { slot, .. }
        | Action::Queue { slot, .. }
        | Action::Flush(slot)
        | Action::Lock(slot, _)
        | Action::Unlock { slot, .. }
        | Action::QueryFile(slot, _)
        | Action::SetBasic(slot)
        | Action::SetEnd(slot, _)
        | Action::SetDelete(slot, _)
        | Action::RenameOpen { slot, .. }
        | Action::ListOpen { slot, .. }
        | Action::Control { slot: Some(slot), .. } => {
            paths.iter().rev().find(|(open, _)| *open == slot).map(|(_, path)| path.clone())
        }
        Action::QueryPath(path, _)
        | Action::RemoveFile(path)
        | Action::MakeDirectory(path)
        | Action::RemoveDirectory(path)
        | Action::RemoveTree(path, _)
        | Action::OpenReadClose { path, .. }
        | Action::List { pattern: path, .. }
        | Action::Rename { from: path, .. } => Some(path.into()),
        Action::QueryFileSystem(_)
        | Action::Control { slot: None, .. }
        | Action::ReadFiles { .. }
        | Action::SessionSetup
        | Action::TreeConnect(_)
        | Action::Echo
        | Action::Think(_)
        | Action::Await { .. } => None,
    }
}

/// Returns true if every retry and every other user would fail the same way. Retrying could lock the account.
fn is_hopeless(error: &ClientError) -> bool {
    match error {
        ClientError::Unsupported(_) => true,
        ClientError::Refused { status, .. } => matches!(
            *status,
            NtStatus::LOGON_FAILURE
                | NtStatus::WRONG_PASSWORD
                | NtStatus::NO_SUCH_USER
                | NtStatus::ACCESS_DENIED
                | NtStatus::ACCOUNT_DISABLED
                | NtStatus::ACCOUNT_LOCKED_OUT
                | NtStatus::PASSWORD_EXPIRED
                | NtStatus::BAD_NETWORK_NAME
        ),
        _ => false,
    }
}
