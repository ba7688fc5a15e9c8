//! `ioctl`.

use super::{CompiledStep, DialectLimit, StepKind, act};
use crate::workload::WorkloadError;
use crate::workload::action::{Action, Expected};
use crate::workload::error::suggest;
use crate::workload::synthetic::compile::{OF, REQUIRED, StepCompiler, StepField};
use smbscope_client::FsctlProfile;

const CODE: StepField = StepField::new("code", REQUIRED, "name of a control code, listed below");

pub(super) const IOCTL: StepKind =
    StepKind::new("ioctl", "sends a control code of a file or of the server", &[CODE, OF], |step| {
        let control = control(step)?;
        let slot = if control.of_file { Some(step.handle(control.access())?.slot) } else { None };
        let ioctl = act(move |_| Action::Control { control, slot });
        let expected = Expected::SuccessOrRefusalOf(control.code);
        let limit: DialectLimit =
            Box::new(move |dialect| Some((control.code.to_string(), control.unsupported_in(dialect)?)));
        Ok(CompiledStep { expected, limit: Some(limit), ..ioctl })
    });

fn control(step: &StepCompiler<'_, '_>) -> Result<&'static FsctlProfile, WorkloadError> {
    let Some(code) = step.value::<String>(&CODE)? else {
        return Err(step.error("the step has no code", "add code = \"GET_REPARSE_POINT\""));
    };
    const ALL: &[FsctlProfile] = &FsctlProfile::ALL;
    let name_of = |control: &FsctlProfile| control.code.to_string().replacen("FSCTL_", "", 1);
    let given = code.get_ref().strip_prefix("FSCTL_").unwrap_or(code.get_ref());
    let Some(control) = ALL.iter().find(|control| name_of(control) == given) else {
        let names: Vec<String> = ALL.iter().map(name_of).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let what = format!("there is no step with the control code \"{}\"", code.get_ref());
        return Err(step.error_at(code.span(), what, &suggest(given, &names)));
    };
    match step.value::<String>(&OF)? {
        Some(of) if !control.of_file => {
            let what = format!("{} is about the server, and not about a file", control.code);
            Err(step.error_at(of.span(), what, "remove of"))
        }
        _ => Ok(control),
    }
}
