//! How a table of the catalog is written: one line a row.
//!
//! Enters: the enum's name, the type of its rows, and a line for each. Leaves: the enum with `ALL` and `descriptor()`, so that a value
//! without a row and a row without a value cannot be written. It must not know what the tables are about.

/// Makes an enum, the list of its values in the order of the table, and the row of each.
macro_rules! table {
    ($(#[$about:meta])+ $table:ident of $descriptor:ident { $($(#[$doc:meta])+ $kind:ident = $row:expr,)+ }) => {
        $(#[$about])+
        pub enum $table {
            $($(#[$doc])+ $kind,)+
        }

        impl $table {
            /// All of them, in the order of the table.
            pub const ALL: &[$table] = &[$($table::$kind),+];

            /// What there is to say about it.
            #[must_use]
            pub const fn descriptor(self) -> &'static $descriptor {
                match self {
                    $($table::$kind => { const ROW: $descriptor = $row; &ROW })+
                }
            }
        }
    };
}

pub(super) use table;
