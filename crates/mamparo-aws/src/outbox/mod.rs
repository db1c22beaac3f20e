//! Whole steps in one transaction, and the relay that carries what follows from them.
