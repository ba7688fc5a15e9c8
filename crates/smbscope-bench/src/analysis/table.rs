//! Exchanges one by one, in the order of their ends, into a table.

use super::recorder::Chooser;
use super::{AnalysisOptions, Error, Found, Observer, follow, names};
use smbscope_analyze::pipeline::{Sharding, Threading};
use smbscope_capture::reader::{CaptureSet, Input};
use smbscope_model::Exchange;
use smbscope_report::table::{ExchangeTable, Provenance};
use std::io;
use std::sync::atomic::Ordering;

/// Captures that are open, and whose exchanges are about to be written.
pub struct Exchanges<'o> {
    options: &'o AnalysisOptions,
    set: CaptureSet,
    threading: Threading,
}

/// An exchange table that was written.
#[derive(Debug)]
pub struct Written {
    /// How the writing went. Where it failed, nobody read the rest of the captures.
    pub result: io::Result<()>,
    /// What was found apart from the exchanges.
    pub found: Found,
}

impl<'o> Exchanges<'o> {
    /// Opens the inputs. The options are to be [`narrowed`](super::narrowed).
    pub fn open(inputs: &[Input], options: &'o AnalysisOptions) -> Result<Exchanges<'o>, Error> {
        let set = CaptureSet::open_with_memory(inputs, false, options.memory)?;
        // Who follows a live capture waits for no batch to be full.
        let at_once = options.threads <= 1 || !inputs.iter().all(Input::can_be_read_again);
        let threading = if at_once { Threading::Inline } else { Threading::Workers };
        Ok(Exchanges { options, set, threading })
    }

    /// Writes every exchange that passes the filter to a table as it comes. Whoever gets [`Written`] looks whether there was
    /// SMB ([`Found::refuse_without_smb`]).
    pub fn write<T: ExchangeTable + Send>(
        self,
        table: io::Result<T>,
        observer: &mut dyn Observer,
    ) -> Result<Written, Error> {
        let Exchanges { options, mut set, threading } = self;
        let names = names(&set);
        let stop = set.stop_flag();
        let mut result = Ok(());
        let mut table = table.map_err(|error| result = Err(error)).ok();
        let mut exchange_id = 0;
        let mut chooser = Chooser::new(options.filter.as_ref(), &names, set.first_packet());
        let sink = |exchange: &Exchange| {
            if let (Ok(()), Some(table)) = (&result, &mut table) {
                if chooser.chooses(exchange) {
                    result = table.write(exchange, exchange_id, &names);
                }
                exchange_id += 1;
            }
            if result.is_err() {
                // Nobody will read the rest.
                stop.store(true, Ordering::Relaxed);
            }
        };
        let found =
            follow(options, &mut set, Sharding::None, threading, &mut [sink], observer).map_err(Error::Failed)?;
        if let (Ok(()), Some(table)) = (&result, table) {
            result = table.finish(&Provenance {
                version: env!("CARGO_PKG_VERSION"),
                captures: &found.captures,
                quality: &found.analysis.quality,
                skipped: &found.analysis.skipped,
                filter: chooser.filtered(),
            });
        }
        if result.is_ok() {
            set.refuse_cut_short()?;
        }
        Ok(Written { result, found })
    }
}
