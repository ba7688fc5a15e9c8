//! Turns an episode into a filter: a first pass over the captures finds the episode, a second one analyses it alone.

use super::{AnalysisError, AnalysisObserver, AnalysisOptions, PendingAnalysis};
use smbscope_capture::reader::CaptureInput;
use smbscope_diagnose::whatif::COMMANDS_MAX;
use smbscope_model::{prose, units};
use smbscope_report::counted;
use smbscope_stats::filter::Filter;

/// Returns the options with a filter that selects their episode, or unchanged if they name none.
pub fn narrowed(
    inputs: &[CaptureInput],
    options: &AnalysisOptions,
    observer: &mut dyn AnalysisObserver,
) -> Result<AnalysisOptions, AnalysisError> {
    let Some(number) = options.episode else { return Ok(options.clone()) };
    let (filter, commands) = of_episode(inputs, options, number, observer)?;
    if !options.what_if.is_empty() && commands > COMMANDS_MAX as u64 {
        let (commands, most) = (counted(commands, "command", "commands"), prose::thousands(COMMANDS_MAX as u64));
        return Err(AnalysisError::Episode(format!(
            "--what-if: episode {number} has {commands}, more than {most}: choose a part of it with --filter"
        )));
    }
    Ok(AnalysisOptions { filter: Some(filter), episode: None, waterfall: true, ..options.clone() })
}

/// Returns a filter that selects an episode, and the episode's number of commands.
pub fn of_episode(
    inputs: &[CaptureInput],
    options: &AnalysisOptions,
    number: u32,
    observer: &mut dyn AnalysisObserver,
) -> Result<(Filter, u64), AnalysisError> {
    if !inputs.iter().all(CaptureInput::can_be_read_again) {
        let pipe = "--episode reads its captures twice, which a pipe does not allow: give files";
        return Err(AnalysisError::Episode(pipe.to_owned()));
    }
    let first = AnalysisOptions { by: Vec::new(), episode: None, what_if: Vec::new(), ..options.clone() };
    let report = PendingAnalysis::open(inputs, &first)?.run(observer)?.into_report(&first)?;
    let episodes = &report.explanation.episodes;
    let Some(episode) = (number as usize).checked_sub(1).and_then(|index| episodes.get(index)) else {
        return Err(AnalysisError::Episode(match episodes.len() {
            0 => format!("--episode {number}: there is no episode; an episode has at least 10 commands"),
            n => format!("--episode {number}: there are {n}; --full lists them"),
        }));
    };
    let begin = report.first.unwrap_or_default();
    let at = |time: smbscope_model::Timestamp| units::exact_duration(time - begin);
    let (start, end) = (at(episode.start), at(episode.end));
    let condition = format!("client == {} and time >= {start} and time <= {end}", episode.client);
    let expression = match &options.filter {
        Some(given) => format!("({given}) and {condition}"),
        None => condition,
    };
    let filter: Filter = expression.parse().map_err(|error| AnalysisError::EpisodeFilter { number, error })?;
    Ok((filter, episode.commands))
}
