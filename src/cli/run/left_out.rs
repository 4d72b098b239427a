//! Observers that cannot watch, with each reason once.
//!
//! Enters: what each observer says of why it cannot watch. Leaves: a sentence a reason, with the names of all observers it holds for.
//! It must not know how a reason is found.

use crate::observe::Unseen;

/// Reasons in the order in which they came first: `cpu, locks and fs are not watched: WHY`. A reason that one observer alone has stays in
/// its words.
pub(super) fn sentences(refused: &[(String, Unseen)]) -> Vec<String> {
    let mut reasons: Vec<(&Unseen, Vec<&str>)> = Vec::new();
    for (name, unseen) in refused {
        match reasons.iter_mut().find(|(known, _)| known.why == unseen.why) {
            Some((_, names)) => names.push(name.as_str()),
            None => reasons.push((unseen, vec![name.as_str()])),
        }
    }
    reasons.into_iter().map(|(unseen, names)| sentence(unseen, &names)).collect()
}

fn sentence(unseen: &Unseen, names: &[&str]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => {
            format!("{} and {last} are not watched: {}", others.join(", "), unseen.why)
        }
        _ => unseen.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(refused: &[(&str, &str, &str)]) -> Vec<String> {
        let owned = |(name, what, why): &(&str, &str, &str)| ((*name).to_owned(), Unseen::new(*what, *why));
        sentences(&refused.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn one_reason_of_several_observers_is_said_once() {
        let refused = [
            ("cpu", "cpu is not watched", "run as root"),
            ("locks", "locks are not watched", "no such tracepoint"),
            ("waits", "waits are not watched", "run as root"),
            ("fs", "fs is not watched", "run as root"),
        ];
        let expected =
            ["cpu, waits and fs are not watched: run as root", "locks are not watched: no such tracepoint"];
        assert_eq!(of(&refused), expected);
        assert_eq!(of(&refused[2..]), ["waits and fs are not watched: run as root"]);
        assert_eq!(of(&refused[3..]), ["fs is not watched: run as root"]);
        assert_eq!(of(&[]), Vec::<String>::new());
    }
}
