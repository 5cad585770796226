use core::arch::wasm32::{memory_grow, memory_size};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const PAGE: usize = 65536;

// Where the room for frames begins, and how large it is. One thread runs an instance; atomics are how safe
// code says that a static may change, and cost nothing here.
static START: AtomicUsize = AtomicUsize::new(0);
static SIZE: AtomicUsize = AtomicUsize::new(0);

/// The address of room for a frame of `size` bytes, 0 if there is none. It has pages of its own: what
/// memory was grown by belongs to who has grown it, whatever allocator there is beside.
pub fn arena(size: usize) -> usize {
    let (start, have) = (START.load(Relaxed), SIZE.load(Relaxed));
    if size <= have {
        return start;
    }
    // The old room is lengthened if it ends where memory does. Otherwise it is lost, and doubling
    // bounds how much that is.
    let last = have > 0 && start.wrapping_add(have) == end();
    let wanted = if last { size - have } else { size.max(have.saturating_mul(2)) };
    let page = match grow(wanted) {
        None if wanted > size => grow(size),
        page => page,
    };
    match page {
        None => return 0,
        Some(_) if last => {}
        Some(page) => START.store(page * PAGE, Relaxed),
    }
    let start = START.load(Relaxed);
    SIZE.store(end().wrapping_sub(start), Relaxed);
    start
}

/// Where memory ends; 0 if that is 4 GiB.
fn end() -> usize {
    memory_size(0).wrapping_mul(PAGE)
}

/// Grows memory by so many bytes at least: the first new page.
fn grow(bytes: usize) -> Option<usize> {
    match memory_grow(0, bytes / PAGE + usize::from(bytes % PAGE != 0)) {
        usize::MAX => None,
        page => Some(page),
    }
}
