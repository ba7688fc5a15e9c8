//! Measures the client's cost per operation (open, read a byte, close of `dir\file.txt`) with the whole engine:
//! schedule, recorder, and a task for each user. `operation_cost` measures the same without the engine.
//!
//! ```sh
//! cargo run --release -p smbscope-testkit --example scripted_server -- --listen 127.0.0.1:4450 --forever &
//! cargo run --release -p smbscope-load --example engine_cost -- 127.0.0.1:4450 1,8,32 10 0x0210
//! ```
//!
//! Arguments: address, users, seconds, dialect revision, and operations per second for an open loop.

use smbscope_client::SessionOptions;
use smbscope_load::engine::{self, Arrivals, LiveFigures, LoadSchedule, RampPlan, StopFlag};
use smbscope_load::workload::{Action, Expected, Script, ScriptStep};
use smbscope_model::Dialect;
use std::error::Error;
use std::time::Duration;

/// Repeats the same operation.
struct Again([String; 1]);

impl Script for Again {
    fn operations(&self) -> &[String] {
        &self.0
    }

    fn next(&mut self) -> Option<ScriptStep<'_>> {
        let action = Action::OpenReadClose { path: "dir\\file.txt", offset: 0, length: 1 };
        Some(ScriptStep { action, operation: Some(0), expected: Expected::Success, completes: true, line: None })
    }

    fn restart(&mut self) {}
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, users, seconds, dialect, rate @ ..] = &arguments[..] else {
        return Err("arguments: ADDRESS USERS SECONDS DIALECT [RATE]".into());
    };
    let schedule = match rate {
        [] => LoadSchedule::Closed { think: Duration::ZERO },
        [rate, ..] => LoadSchedule::Open { rate: rate.parse()?, per_user: false, arrivals: Arrivals::Poisson },
    };
    let plan = RampPlan {
        users: users.parse()?,
        schedule,
        warmup: Duration::from_secs(1),
        duration: Duration::from_secs_f64(seconds.parse()?),
        ..RampPlan::default()
    };
    let dialect = u16::from_str_radix(dialect.trim_start_matches("0x"), 16)?;
    let options = SessionOptions {
        dialect: Dialect::Smb2(dialect),
        ..SessionOptions::new("127.0.0.1", address.parse()?, "share")
    };
    let scripts = |_| Box::new(Again(["open-read-close".to_owned()])) as Box<dyn Script>;
    for run in engine::run(&plan, &options, &scripts, &mut (), &LiveFigures::default(), &StopFlag::new())? {
        let operation = &run.operations[0];
        let (service, command) = (operation.service.figures(), run.total().figures());
        let cpu = run.client_cpu;
        let spent = (cpu.user + cpu.system).as_secs_f64() * 1e6 / operation.service.count().max(1) as f64;
        println!(
            "{} users: {:.0} operations/s, {spent:.1} µs of processor time each ({:.0} % in the kernel); p50 {} p99 {} an \
             operation, p50 {} p99 {} a command; busiest thread {:.0} %, woken late p99 {}; {:?}",
            run.users,
            operation.service.count() as f64 / run.duration.as_secs_f64(),
            100.0 * cpu.system.as_secs_f64() / (cpu.user + cpu.system).as_secs_f64(),
            service.p50.unwrap_or_default(),
            service.p99.unwrap_or_default(),
            command.p50.unwrap_or_default(),
            command.p99.unwrap_or_default(),
            100.0 * cpu.busiest,
            cpu.late_p99.unwrap_or_default(),
            run.ended,
        );
        if let Some(response) = &operation.response {
            let response = response.figures();
            let (p50, p99) = (response.p50.unwrap_or_default(), response.p99.unwrap_or_default());
            println!("    from the intended start: p50 {p50} p99 {p99}; {:?}", run.pace);
        }
        for (reason, count) in &run.failures {
            println!("    {count} × {reason}");
        }
    }
    Ok(())
}
