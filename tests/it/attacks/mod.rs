//! Attacks on what was not named: each is tried, and the victim's bytes are compared before and after.

mod job_options;
