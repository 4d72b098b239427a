//! What an attack on assay found, a module a class: each test is an attack that must come to nothing.

mod inputs_outputs;
mod terminal;
