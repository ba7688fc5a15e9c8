//! Validates a TOML workload and compiles it to steps, or returns an error with position and remedy.

use super::source::{
    KEYS_HINT, ProblemWithHint, RawFiles, RawOperation, RawScenarios, RawStep, RawWorkload, TomlSource, size, sizes,
    time, times,
};
use super::steps::{STEPS, StepCompiler, StepContext, StepResources};
use super::{OperationOrder, Parsed, Synthetic, SyntheticStep};
use crate::workload::action::Expected;
use crate::workload::draw::{SizeDistribution, Times};
use crate::workload::paths::FileSet;
use crate::workload::{CreatedPaths, Scenarios, WorkloadError, suggest};
use smbscope_model::units;
use smbscope_stats::Random;
use smbscope_wire::status::NtStatus;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use toml::{Spanned, Value};

/// Maximum number of steps in an operation, including repetitions.
const MOST_STEPS: usize = 100_000;
/// Repetitions of an operation; more are refused.
const TIMES_MAX: i64 = 1_000_000_000;
const MOST_FILES: i64 = 10_000_000;
/// Directories in each directory; more are refused.
const NESTED_MAX: i64 = 10_000;

/// Default for the maximum delay of a scenario's start.
const LATE: Duration = Duration::from_secs(1);

const ORDERS: [(&str, OperationOrder); 2] =
    [("random", OperationOrder::Random), ("sequence", OperationOrder::Sequence)];

/// Keys of every step.
const COMMON_KEYS: [&str; 4] = ["do", "expect", "counts_as", "repeat"];

pub(in crate::workload) fn parameters(file: &str, text: &str) -> Result<Vec<(String, String)>, WorkloadError> {
    TomlSource::new(file, text).parameters()
}

pub(in crate::workload) fn with_parameters(
    file: &str,
    text: &str,
    set: &[(String, String)],
) -> Result<String, WorkloadError> {
    TomlSource::new(file, text).with(set)
}

pub(in crate::workload) fn parse(file: &str, text: &str) -> Result<Parsed, WorkloadError> {
    let written = TomlSource::new(file, text);
    let expanded = written.expanded()?;
    let source = written.with_expanded(&expanded);
    let raw: RawWorkload = toml::from_str(&expanded.text).map_err(|error| source.toml_error(&error))?;
    check_keys(source, &raw)?;
    let resources = StepResources { files: FileSet::none(), slots: 0, always_open: BTreeMap::new(), makes: false };
    let mut checker = Checker { source, resources, operations: Vec::new() };
    checker.files(raw.files.as_ref())?;
    if raw.operation.is_empty() {
        let hint = "add [[operation]] with a name and steps";
        return Err(source.error(raw.name.span(), "the workload has no operation", hint));
    }
    let start = match &raw.start {
        Some(start) => checker.start(&start.steps)?,
        None => Vec::new(),
    };
    let order = source.named(raw.order.as_ref(), "order", &ORDERS)?;
    let mut choices = Vec::new();
    let mut total = 0;
    for operation in &raw.operation {
        let lines = checker.operation(operation)?;
        let count = checker.count(operation.get_ref(), order)?;
        total += count;
        choices.push((if order == OperationOrder::Random { total } else { count }, lines));
    }
    if total == 0 {
        let hint = "give one a weight above 0";
        return Err(source.error(raw.operation[0].span(), "every operation has the weight 0", hint));
    }
    let think = match &raw.think {
        Some(value) => times(value.get_ref()).map_err(|wrong| checker.wrong(value.span(), wrong))?,
        None => Times::Fixed(Duration::ZERO),
    };
    let scenarios = raw.scenarios.as_ref().map(|scenarios| checker.scenarios(scenarios, order)).transpose()?;
    let Checker { resources: StepResources { mut files, slots, makes, .. }, operations, .. } = checker;
    files.own_directories |= makes;
    let salt = name_salt(raw.name.get_ref());
    let files = Arc::new(files);
    let synthetic = Synthetic {
        operations,
        choices,
        order,
        start,
        think,
        scenarios,
        files,
        slots,
        makes,
        made: CreatedPaths::default(),
        salt,
    };
    Ok(Parsed { name: raw.name.into_inner(), description: raw.description, synthetic })
}

/// Returns an error for the first key that no step has.
fn check_keys(source: TomlSource<'_>, raw: &RawWorkload) -> Result<(), WorkloadError> {
    let own = STEPS.iter().flat_map(|kind| kind.fields).map(|field| field.key);
    let [first, rest @ ..] = COMMON_KEYS;
    let mut known = Vec::new();
    for key in [first].into_iter().chain(own).chain(rest) {
        if !known.contains(&key) {
            known.push(key);
        }
    }
    let steps = raw.operation.iter().flat_map(|operation| &operation.get_ref().steps);
    let mut steps = steps.chain(raw.start.iter().flat_map(|start| &start.steps));
    match steps.find_map(|step| step.get_ref().unknown(&known).next()) {
        Some((key, _)) => {
            let what = format!("unknown field \"{}\"", key.get_ref());
            Err(source.error(key.span(), what, suggest(key.get_ref(), &known)))
        }
        None => Ok(()),
    }
}

/// Parses the size of files, including `{ total = … }`.
fn file_sizes(value: &Value, files: u32, seed: u64) -> Result<SizeDistribution, ProblemWithHint> {
    let total = value.as_table().filter(|table| table.len() == 1).and_then(|table| table.get("total"));
    let Some(total) = total else { return sizes(value) };
    let bytes = size(total)?;
    if bytes < u64::from(files) {
        return Err((format!("{files} files come to {bytes} bytes"), "give each of them a byte at least".to_owned()));
    }
    Ok(SizeDistribution::adding_up_to(bytes, files, seed))
}

struct Checker<'t> {
    source: TomlSource<'t>,
    resources: StepResources,
    operations: Vec<String>,
}

impl Checker<'_> {
    fn wrong(&self, span: std::ops::Range<usize>, (what, hint): ProblemWithHint) -> WorkloadError {
        self.source.error(span, what, hint)
    }

    fn files(&mut self, raw: Option<&Spanned<RawFiles>>) -> Result<(), WorkloadError> {
        let Some(raw) = raw.map(Spanned::get_ref) else { return Ok(()) };
        let files = self.source.number(&raw.count, "count", 1, MOST_FILES)?;
        let directories = match &raw.directories {
            Some(directories) => self.source.number(directories, "directories", 1, files)?,
            None => 1,
        };
        let seed = raw.seed.as_ref().map_or(Ok(1), |seed| self.source.number(seed, "seed", 0, i64::MAX))?;
        let nested = raw.nested.as_ref().map_or(Ok(0), |nested| self.source.number(nested, "nested", 2, NESTED_MAX))?;
        let sizes = file_sizes(raw.size.get_ref(), files as u32, seed as u64)
            .map_err(|wrong| self.wrong(raw.size.span(), wrong))?;
        self.resources.files = FileSet {
            own_directories: !raw.shared,
            shared: raw.shared,
            directories: directories as u32,
            nested: nested as u32,
            files: files as u32,
            sizes,
            seed: seed as u64,
        };
        Ok(())
    }

    fn scenarios(&self, raw: &RawScenarios, order: OperationOrder) -> Result<Scenarios, WorkloadError> {
        if order == OperationOrder::Sequence {
            let hint = "remove order = \"sequence\", or [scenarios]";
            let what = "scenarios are drawn at random, and a sequence is not";
            return Err(self.source.error(raw.rate.span(), what, hint));
        }
        let rate = units::rate(raw.rate.get_ref()).ok().filter(|rate| *rate > 0.0 && rate.is_finite());
        let rate = rate.ok_or_else(|| {
            let hint = "write how many each user begins a second, such as \"0.085/s\" or \"5/min\"";
            self.source.error(raw.rate.span(), format!("\"{}\" is not a rate", raw.rate.get_ref()), hint)
        })?;
        let limit = |value: &Spanned<Value>| match time(value.get_ref()) {
            Ok(limit) if limit.is_zero() => {
                Err(self.source.error(value.span(), "the limit is 0", "write a time above it, such as \"1s\""))
            }
            Ok(limit) => Ok(limit),
            Err(wrong) => Err(self.wrong(value.span(), wrong)),
        };
        let late = raw.late.as_ref().map_or(Ok(LATE), limit)?;
        Ok(Scenarios { rate, late, budget: raw.budget.as_ref().map(limit).transpose()? })
    }

    /// Compiles `[start]`. Its steps run once and are not counted; its handles stay open.
    fn start(&mut self, steps: &[Spanned<RawStep>]) -> Result<Vec<SyntheticStep>, WorkloadError> {
        let mut known = StepContext { open: BTreeMap::new(), file: None, directory: false };
        let mut lines = Vec::new();
        for step in steps {
            if let Some(counts_as) = self.source.value::<String>(step.get_ref(), "counts_as")? {
                let what = "what [start] does is not counted";
                return Err(self.source.error(counts_as.span(), what, "remove counts_as"));
            }
            self.step(step, None, &mut known, &mut lines)?;
        }
        self.resources.always_open = known.open;
        Ok(lines)
    }

    /// Returns the weight of an operation, or the number of consecutive runs in a sequence.
    fn count(&self, raw: &RawOperation, order: OperationOrder) -> Result<u64, WorkloadError> {
        let (weight, times) = (raw.weight.as_ref(), raw.times.as_ref());
        match (order, weight, times) {
            (OperationOrder::Random, _, Some(times)) => {
                let hint = "write order = \"sequence\" at the top of the file, or weight instead of times";
                Err(self.source.error(times.span(), "operations are drawn at random, so none has times", hint))
            }
            (OperationOrder::Sequence, Some(weight), _) => {
                let hint = "write times = 3 to perform it three times in a row";
                let what = "operations are performed in sequence, so none has a weight";
                Err(self.source.error(weight.span(), what, hint))
            }
            (OperationOrder::Random, weight, None) => {
                Ok(weight.map_or(Ok(1), |weight| self.source.number(weight, "weight", 0, 1_000_000))? as u64)
            }
            (OperationOrder::Sequence, None, None) => Ok(1),
            (OperationOrder::Sequence, None, Some(times)) => match times.get_ref() {
                Value::Integer(number) if (1..=TIMES_MAX).contains(number) => Ok(*number as u64),
                Value::String(text) if text == "files" && self.resources.files.files > 0 => {
                    Ok(self.resources.files.files.into())
                }
                Value::String(text) if text == "files" => {
                    let hint = "add [files] with count and size, or write a number";
                    Err(self.source.error(times.span(), "the workload has no files", hint))
                }
                other => {
                    let hint = format!("write a number from 1 to {TIMES_MAX}, or \"files\"");
                    Err(self.source.error(times.span(), format!("times is {other}"), hint))
                }
            },
        }
    }

    fn operation(&mut self, operation: &Spanned<RawOperation>) -> Result<Vec<SyntheticStep>, WorkloadError> {
        let raw = operation.get_ref();
        if raw.name.get_ref().trim().is_empty() {
            return Err(self.source.error(raw.name.span(), "an operation has no name", "results list it by its name"));
        }
        if raw.steps.is_empty() {
            return Err(self.source.error(operation.span(), "the operation has no steps", "add steps = [{ do = … }]"));
        }
        let mut known = StepContext { open: self.resources.always_open.clone(), file: None, directory: false };
        let mut lines = Vec::new();
        for step in &raw.steps {
            let counts_as = self.source.value(step.get_ref(), "counts_as")?;
            let index = self.operation_index(counts_as.as_ref().unwrap_or(&raw.name).get_ref());
            self.step(step, Some(index), &mut known, &mut lines)?;
            if lines.len() > MOST_STEPS {
                let hint = "repeat less: the operations themselves are repeated without end";
                let what = format!("the operation has more than {MOST_STEPS} steps");
                return Err(self.source.error(step.span(), what, hint));
            }
        }
        if let Some(name) = known.open.keys().find(|name| !self.resources.always_open.contains_key(*name)) {
            let hint = format!("add {{ do = \"close\", of = \"{name}\" }}, or open it in [start]");
            return Err(self.source.error(operation.span(), format!("the operation leaves \"{name}\" open"), hint));
        }
        // An operation ends with the last consecutive step that counts towards it.
        for at in 0..lines.len() {
            let next = lines.iter().skip(at + 1).find(|line| line.operation.is_some());
            lines[at].completes =
                lines[at].operation.is_some() && next.is_none_or(|next| next.operation != lines[at].operation);
        }
        Ok(lines)
    }

    fn step(
        &mut self,
        step: &Spanned<RawStep>,
        operation: Option<usize>,
        known: &mut StepContext,
        lines: &mut Vec<SyntheticStep>,
    ) -> Result<(), WorkloadError> {
        let (source, raw) = (self.source, step.get_ref());
        let Some(given) = source.value::<String>(raw, "do")? else {
            return Err(source.error(step.span(), "missing field `do`", KEYS_HINT));
        };
        let name = given.get_ref().as_str();
        let Some(kind) = STEPS.iter().find(|kind| kind.name == name) else {
            let names: Vec<&str> = STEPS.iter().map(|kind| kind.name).collect();
            return Err(source.error(given.span(), format!("there is no step \"{name}\""), suggest(name, &names)));
        };
        let keys: Vec<&str> = kind.fields.iter().map(|field| field.key).collect();
        let known_keys = [&keys, COMMON_KEYS.as_slice()].concat();
        let foreign = raw.unknown(&known_keys).map(|(key, value)| (key.get_ref(), value.span()));
        if let Some((key, span)) = foreign.min_by_key(|(_, span)| span.start) {
            let hint = match keys.is_empty() {
                true => "remove it: this step has no keys of its own".to_owned(),
                false => suggest(key, &keys),
            };
            return Err(source.error(span, format!("a step \"{name}\" has no key \"{key}\""), hint));
        }
        let mut compiled = (kind.compile)(&mut StepCompiler::new(source, &mut self.resources, known, step))?;
        if let Some(status) = source.value::<String>(raw, "expect")? {
            compiled.expected = expected(&status).ok_or_else(|| {
                let hint = "write it as the specification does: \"OBJECT_NAME_NOT_FOUND\"";
                source.error(status.span(), format!("\"{}\" is not a status", status.get_ref()), hint)
            })?;
        }
        let repeat = source.value(raw, "repeat")?;
        let repeat = repeat.map_or(Ok(1), |repeat| source.number(&repeat, "repeat", 1, MOST_STEPS as i64))?;
        if repeat > 1 && !compiled.can_repeat {
            let hint = "repeat the operation instead, or write the steps several times";
            return Err(source.error(step.span(), format!("a step \"{name}\" cannot be repeated"), hint));
        }
        let operation = operation.filter(|_| compiled.is_counted);
        let line = SyntheticStep { compiled: Arc::new(compiled), operation, completes: false };
        lines.extend(std::iter::repeat_n(line, repeat as usize));
        Ok(())
    }

    fn operation_index(&mut self, name: &str) -> usize {
        self.operations.iter().position(|operation| operation == name).unwrap_or_else(|| {
            self.operations.push(name.to_owned());
            self.operations.len() - 1
        })
    }
}

fn expected(status: &Spanned<String>) -> Option<Expected> {
    let name = status.get_ref().trim_start_matches("NT_").trim_start_matches("STATUS_");
    let is_named = |known: &&NtStatus| known.name().is_some_and(|known| known == format!("STATUS_{name}"));
    NtStatus::KNOWN.iter().find(is_named).map(|status| Expected::Status(*status))
}

/// Hashes the name, so that two workloads draw different random numbers.
fn name_salt(name: &str) -> u64 {
    let parts: Vec<u64> = name.bytes().map(u64::from).collect();
    Random::new(&parts).bits()
}
