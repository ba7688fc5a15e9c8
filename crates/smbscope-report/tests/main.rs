//! Tests of reports, comparisons, ramps and studies as text, JSON and tables.

mod bench;
mod classic;
mod columns;
mod common;
mod compare;
mod csv;
mod json;
mod markdown;
mod parquet;
mod schemas;
mod sentence;
mod slices;
mod study;
mod text;
