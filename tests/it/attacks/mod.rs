//! Attacks on what is not assay's: a module a class, the victim's bytes compared before and after.

mod stores;
mod stores_forged;
mod stores_together;
