//! Enums whose values have names: each value stands in one place, with its name.
//!
//! Enters: an enum as it would be written, with `= "name"` behind each value. Leaves: the enum with `ALL`, `name()` and `named()`.

/// Makes an enum, the list of its values, and their names in both directions.
macro_rules! named {
    ($(#[$about:meta])+ $seen:vis enum $enum:ident { $($(#[$doc:meta])* $value:ident = $name:literal,)+ }) => {
        $(#[$about])+
        $seen enum $enum {
            $($(#[$doc])* $value,)+
        }

        #[allow(dead_code, reason = "not every enum is listed, or read from its names")]
        impl $enum {
            /// All of them, in the order in which they are written.
            $seen const ALL: [$enum; [$($name),+].len()] = [$($enum::$value),+];

            /// Its name.
            #[must_use]
            $seen const fn name(self) -> &'static str {
                match self {
                    $($enum::$value => $name,)+
                }
            }

            /// The one of this name.
            #[must_use]
            $seen fn named(name: &str) -> Option<$enum> {
                $enum::ALL.into_iter().find(|value| value.name() == name)
            }
        }
    };
}
