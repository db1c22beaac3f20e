//! Names that could have been meant.

/// As many names are listed.
const MAX_LISTED: usize = 10;

/// From here on, two names look like one and a slip of the pen.
const ALIKE: f64 = 0.6;

/// Returns the name that is most like what was typed, if any is.
pub(super) fn meant<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let like = |name: &str| {
        let name = name.to_lowercase();
        // A package that was left out is no slip of many letters.
        let last = name.rsplit('.').next().unwrap_or(&name);
        strsim::normalized_damerau_levenshtein(&typed, &name)
            .max(strsim::normalized_damerau_levenshtein(&typed, last))
    };
    let alike = names.map(|name| (like(name), name));
    let best = alike.max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(like, _)| *like >= ALIKE)
        .map(|(_, name)| name)
}

/// Lists names, up to a number.
pub(super) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    let mut list = names[..names.len().min(MAX_LISTED)].join(", ");
    if names.len() > MAX_LISTED {
        list += &format!(" and {} more", names.len() - MAX_LISTED);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_seen_through_and_another_name_is_not() {
        let names = ["shop.v1.Prices", "shop.v1.Orders", "grpc.health.v1.Health"];
        let meant = |typed| meant(typed, names.into_iter());
        assert_eq!(meant("shop.v1.Price"), Some("shop.v1.Prices"));
        assert_eq!(meant("shop.v1.prices"), Some("shop.v1.Prices"));
        assert_eq!(
            meant("Prices"),
            Some("shop.v1.Prices"),
            "without its package"
        );
        assert_eq!(meant("Oders"), Some("shop.v1.Orders"));
        assert_eq!(meant("Stock"), None);
        assert_eq!(meant(""), None);
    }

    #[test]
    fn a_list_is_not_endless() {
        let names: Vec<_> = (1..=12).map(|number| number.to_string()).collect();
        let list = |count: usize| list(names[..count].iter().map(String::as_str));
        assert_eq!(list(2), "1, 2");
        assert!(list(12).ends_with("9, 10 and 2 more"), "{}", list(12));
    }
}
