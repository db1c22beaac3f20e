//! Whole steps in one transaction, and the relay that carries what follows from them.
//!
//! A step's writes, its history and *what is to be done after it* (schedules, requests, fires) are one `TransactWriteItems`.
//! Whoever committed it carries that out at once and deletes the note of it; who dies before that leaves a note whose lease
//! ends, and the relay of any engine carries it out then. So everything happens at least once, and nothing that was not committed.
//!
//! | a step with | requests to DynamoDB | and besides |
//! |---|---|---|
//! | a schedule | the commit, and a delete of the note, gathered with others' | one `CreateSchedule`, or a message where it is due soon |
//! | a request | the same, and one read of what is to be sent | one message, gathered |
//! | no write | none, or one read | what it asks for |
//!
//! The relay looks into each slot of the notes every few seconds.

mod carrier;
mod notes;
mod postpone;
mod relay;
mod steps;
#[cfg(test)]
mod tests;

pub(crate) use steps::DynamoOutbox;
