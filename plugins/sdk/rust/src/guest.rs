//! What the host calls; docs/PLUGIN-ABI.md says when. [`plugin!`](crate::plugin) makes exports of these.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

#[cfg(target_arch = "wasm32")]
pub use crate::arena::arena;
pub use crate::call::Frame;
use crate::{Call, Error, EventClass, Result, Woken};

/// The host may be called: not before `lk_init` has returned.
static BEGUN: AtomicBool = AtomicBool::new(false);

#[inline]
pub fn abi() -> i32 {
    #[cfg(feature = "std")]
    std::panic::set_hook(Box::new(|info| report(info)));
    1
}

#[inline]
pub fn init(run: fn() -> Result) -> i32 {
    let result = run();
    BEGUN.store(true, Relaxed);
    match result {
        Ok(()) => 0,
        Err(_) => -103, // there is no client to be told why
    }
}

/// # Safety
///
/// There is a frame of `argc` arguments at `frame`; so in the functions below.
#[inline]
pub unsafe fn command(argc: usize, frame: *const Frame, run: impl FnOnce(&Call) -> Result) -> i32 {
    match run(&Call::of(frame, argc)) {
        Ok(()) => 0,
        Err(e) => e.reply(),
    }
}

/// # Safety
///
/// As [`command`].
#[inline]
pub unsafe fn wake(argc: usize, frame: *const Frame, run: impl FnOnce(&Call) -> Result<Woken>) -> i32 {
    match run(&Call::of(frame, argc)) {
        Ok(Woken::Done) => 0,
        Ok(Woken::Again) => 1,
        Err(e) => e.reply(),
    }
}

#[inline]
pub fn timer(run: impl FnOnce(&Call) -> Result) -> i32 {
    silent(run(&Call::empty(&Frame::default())))
}

/// # Safety
///
/// As [`command`].
#[inline]
pub unsafe fn event(
    class: i32,
    argc: usize,
    frame: *const Frame,
    run: impl FnOnce(&Call, EventClass, &[u8], &[u8]) -> Result,
) -> i32 {
    let c = Call::of(frame, argc);
    silent(match EventClass::of(class) {
        Some(class) => run(&c, class, c.arg(0), c.arg(1)),
        None => Err(Error::Invalid),
    })
}

/// # Safety
///
/// As [`command`].
#[inline]
pub unsafe fn closed(argc: usize, frame: *const Frame, run: impl FnOnce(&Call, &[u8]) -> Result) -> i32 {
    let c = Call::of(frame, argc);
    silent(run(&c, c.arg(0)))
}

/// The result of a call that nobody waits for.
#[inline]
fn silent(result: Result) -> i32 {
    match result {
        Ok(()) => 0,
        Err(e) => e.report(),
    }
}

/// Writes to the log why a call panicked.
#[cfg(any(feature = "std", target_arch = "wasm32"))]
#[cold]
fn report(info: &dyn core::fmt::Display) {
    use core::fmt::Write;

    if BEGUN.load(Relaxed) {
        let mut text = crate::Text::<512>::new();
        let _ = write!(text, "{}", info); // what has no room is left out
        crate::log(crate::Level::Warning, text.as_str());
    }
}

#[cfg(all(target_arch = "wasm32", not(feature = "std")))]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    report(info);
    core::arch::wasm32::unreachable()
}

/// Says what a plugin consists of, once in its crate:
///
/// ```ignore
/// latchkey::plugin! {
///     manifest: "manifest.json",             // put into the module; without it: latchkey plugin pack
///     init: fn() -> Result,                  // once in every instance, before any command
///     commands: {
///         1 => fn(&Call) -> Result,          // the id in the manifest, and the function behind it
///         2 => fn(&Call) -> Result,
///     },
///     wake: fn(&Call, token: i64, timeout: bool) -> Result<Woken>,
///     timer: fn(&Call, token: i64) -> Result,
///     event: fn(&Call, EventClass, event: &[u8], key: &[u8]) -> Result,
///     closed: fn(&Call, key: &[u8], token: i64) -> Result,
/// }
/// ```
///
/// All but `commands` may be missing; they stand in this order.
///
/// A command gives exactly one reply and returns `Ok(())`, or returns an error, which undoes what it did
/// and becomes the reply. `init` cannot call the host; an error refuses the module. `wake` is called for a client
/// that has waited since [`Call::block`], with the arguments of its command, or for the last time when its
/// time is over; without it the command is called again. `timer`, `event` and `closed` have no client and
/// give no reply; what they return as an [`Error::Reply`] goes to the log.
///
/// The path of the manifest is relative to the file that this stands in.
#[macro_export]
macro_rules! plugin {
    (
        $(manifest: $manifest:literal,)?
        $(init: $init:expr,)?
        commands: { $($id:literal => $command:expr),+ $(,)? }
        $(, wake: $wake:expr)?
        $(, timer: $timer:expr)?
        $(, event: $event:expr)?
        $(, closed: $closed:expr)?
        $(,)?
    ) => {
        const _: () = {
            use $crate::guest::Frame;

            $(
                #[cfg_attr(target_arch = "wasm32", link_section = "latchkey.manifest")]
                #[used]
                static MANIFEST: [u8; include_bytes!($manifest).len()] = *include_bytes!($manifest);
            )?

            #[no_mangle]
            pub extern "C" fn lk_abi() -> i32 {
                $crate::guest::abi()
            }

            #[cfg(target_arch = "wasm32")]
            #[no_mangle]
            pub extern "C" fn lk_arena(size: usize) -> usize {
                $crate::guest::arena(size)
            }

            #[no_mangle]
            pub extern "C" fn lk_init() -> i32 {
                #[allow(unused_mut, unused_assignments)]
                let mut init: fn() -> $crate::Result = || Ok(());
                $(init = $init;)?
                $crate::guest::init(init)
            }

            #[no_mangle]
            pub unsafe extern "C" fn lk_command(id: i32, argc: usize, frame: *const Frame) -> i32 {
                $crate::guest::command(argc, frame, |c| match id {
                    $($id => $command(c),)+
                    _ => Err($crate::Error::Invalid), // the manifest has no other
                })
            }

            $(
                #[no_mangle]
                pub unsafe extern "C" fn lk_wake(token: i64, reason: i32, argc: usize, frame: *const Frame) -> i32 {
                    $crate::guest::wake(argc, frame, |c| $wake(c, token, reason == 1))
                }
            )?

            $(
                #[no_mangle]
                pub extern "C" fn lk_timer(token: i64) -> i32 {
                    $crate::guest::timer(|c| $timer(c, token))
                }
            )?

            $(
                #[no_mangle]
                pub unsafe extern "C" fn lk_event(class: i32, argc: usize, frame: *const Frame) -> i32 {
                    $crate::guest::event(class, argc, frame, $event)
                }
            )?

            $(
                #[no_mangle]
                pub unsafe extern "C" fn lk_closed(token: i64, argc: usize, frame: *const Frame) -> i32 {
                    $crate::guest::closed(argc, frame, |c, key| $closed(c, key, token))
                }
            )?
        };
    };
}
