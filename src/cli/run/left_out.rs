//! Observers that cannot watch, with each reason once.
//!
//! Enters: what each observer says of why it cannot watch. Leaves: a sentence a reason, with the names of all observers it holds for.
//! It must not know how a reason is found.

/// Reasons in the order in which they came first: `cpu, locks and fs are not watched: WHY`. A reason that one observer alone has stays in
/// its words.
pub(super) fn sentences(refused: &[(String, String)]) -> Vec<String> {
    let mut reasons: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for (name, said) in refused {
        // What stands before it names the observer.
        let why = said.split_once("not watched: ").map_or(said.as_str(), |(_, why)| why);
        match reasons.iter_mut().find(|(known, _, _)| *known == why) {
            Some((_, _, names)) => names.push(name.as_str()),
            None => reasons.push((why, said.as_str(), vec![name.as_str()])),
        }
    }
    reasons.into_iter().map(|(why, said, names)| sentence(why, said, &names)).collect()
}

fn sentence(why: &str, said: &str, names: &[&str]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => {
            format!("{} and {last} are not watched: {why}", others.join(", "))
        }
        _ => said.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(refused: &[(&str, &str)]) -> Vec<String> {
        let owned = |(name, said): &(&str, &str)| ((*name).to_owned(), (*said).to_owned());
        sentences(&refused.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn one_reason_of_several_observers_is_said_once() {
        let refused = [
            ("cpu", "cpu is not watched: run as root"),
            ("locks", "locks are not watched: no such tracepoint"),
            ("waits", "waits are not watched: run as root"),
            ("fs", "fs: not watched: run as root"),
        ];
        let expected =
            ["cpu, waits and fs are not watched: run as root", "locks are not watched: no such tracepoint"];
        assert_eq!(of(&refused), expected);
        assert_eq!(of(&refused[2..]), ["waits and fs are not watched: run as root"]);
        assert_eq!(of(&refused[3..]), ["fs: not watched: run as root"]);
        assert_eq!(of(&[]), Vec::<String>::new());
    }
}
