//! Just enough reading of Rust source for the checks.

/// `text` without the lines that are comments.
pub(super) fn code(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.fold(String::new(), |code, line| code + line + "\n")
}

/// The first thing in a `mod.rs` that is neither docs, `mod` nor `use`.
pub(super) fn logic(text: &str) -> Option<String> {
    let code = code(text);
    let lines = code
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'));
    let items = lines.collect::<Vec<_>>().join(" ");
    let mut items = items
        .split(';')
        .map(str::trim)
        .filter(|item| !item.is_empty());
    items
        .find(|item| !is_mod_or_use(item))
        .map(|item| item.chars().take(60).collect())
}

fn is_mod_or_use(item: &str) -> bool {
    let item = match item
        .strip_prefix("pub(")
        .and_then(|rest| rest.split_once(") "))
    {
        Some((_, item)) => item,
        None => item.strip_prefix("pub ").unwrap_or(item),
    };
    item.starts_with("use ") || (item.starts_with("mod ") && !item.contains('{'))
}

/// The modules of its own crate that some code names.
pub(super) fn modules(code: &str) -> Vec<String> {
    // From inside a layer's folder, two steps up is the crate.
    let code = code.replace("super::super::", "crate::");
    code.split("crate::")
        .skip(1)
        .flat_map(first_segments)
        .collect()
}

/// What stands right after `crate::`: one name, or those of a group.
fn first_segments(path: &str) -> Vec<String> {
    let Some(group) = path.strip_prefix('{') else {
        return vec![word(path)];
    };
    let mut depth = 0;
    let outermost = group.chars().take_while(|&c| c != ';').filter(|&c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0
    });
    let outermost: String = outermost.collect();
    outermost
        .split(',')
        .map(|entry| word(entry.trim()))
        .collect()
}

/// The identifier that `text` begins with.
pub(super) fn word(text: &str) -> String {
    text.chars().take_while(|&c| is_word(c)).collect()
}

/// Whether `name` stands in `text` as a word of its own.
pub(super) fn has_word(text: &str, name: &str) -> bool {
    text.split(|c| !is_word(c)).any(|found| found == name)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[test]
fn a_function_a_constant_or_an_inline_module_in_a_mod_rs_is_logic() {
    assert_eq!(
        logic("//! fn story() {}\n#[cfg(test)]\nmod tests;\npub(crate) use a::{b, c};\npub mod d;"),
        None
    );
    assert_eq!(
        logic("mod a;\nfn two() -> u8 {\n    2\n}\n").as_deref(),
        Some("fn two() -> u8 { 2 }")
    );
    assert!(logic("pub(crate) const A: u8 = 1;").is_some());
    assert!(logic("mod a { }").is_some());
}
