//! What was typed. What it means is decided by each command's `settings.rs`.
//!
//! [`Args`] is the command line, a struct per command holds its options, and [`typed`] has the values that they take:
//! what can be refused without looking at another option is refused while it is parsed.

mod aws;
mod call;
mod check;
mod command;
mod defer;
mod demo;
mod events;
mod messages;
mod typed;

pub(crate) use aws::{AwsCommand, Format, OfArgs, PlanArgs, ReachArgs};
pub(crate) use call::CallArgs;
pub(crate) use check::{CheckArgs, ExplainArgs, Report};
pub(crate) use command::{Args, Command};
pub(crate) use defer::{
    DeadArgs, DeadOneArgs, DiscardArgs, DlqCommand, EngineCommand, HeapArgs, ListArgs, OneArgs,
    OperateArgs, ReconcileArgs, RequeueArgs, RetryArgs, RunArgs, StatusArgs, SubmitArgs, TxCommand,
};
pub(crate) use demo::DemoArgs;
pub(crate) use events::{
    EventsCommand, OutboxArgs, ParkedArgs, ParkedDiscardArgs, ParkedManyArgs, ParkedOneArgs,
};
pub(crate) use messages::{ConsumeArgs, Filter, Key};
pub(crate) use typed::{Data, Delay, Field, Limit, Rate};
