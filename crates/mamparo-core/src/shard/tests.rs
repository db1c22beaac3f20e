//! Values by shard.

use super::*;

#[test]
fn a_thread_finds_its_own_and_whoever_adds_up_finds_all() {
    let each = Each::new();
    assert_eq!(each.made().count(), 0);
    each.own(|| 1);
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(*each.own(|| 2), 2));
    });
    assert_eq!(*each.own(|| 3), 1);
    assert_eq!(each.made().sum::<i32>(), 3);
}

#[test]
fn a_value_has_its_lines_to_itself() {
    assert_eq!((align_of::<Line<u8>>(), size_of::<Line<u8>>()), (128, 128));
}
