//! What was tried to make assay lose somebody's data, or leave something behind; a file a class of attack.

mod endings;
