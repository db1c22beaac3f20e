//! Queues on SQS.
