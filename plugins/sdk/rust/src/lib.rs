//! For writing latchkey plugins in Rust.
//!
//! A plugin is a `cdylib` that names its functions to [`plugin!`]. Its manifest, a file beside it,
//! says what the commands are called and what they may do:
//!
//! ```ignore
//! #![no_std]
//! #![forbid(unsafe_code)]
//!
//! use latchkey::{Call, Result, SetOptions};
//!
//! latchkey::plugin! {
//!     manifest: "manifest.json",
//!     commands: { 1 => hello },
//! }
//!
//! fn hello(c: &Call) -> Result {
//!     c.set(c.arg(1), c.arg(2), SetOptions::default())?;
//!     c.reply_simple("hello");
//!     Ok(())
//! }
//! ```
//!
//! What to keep in mind:
//!
//!   - A command is a transaction. Return an error, or panic, and all that it wrote is undone. A panic
//!     goes to the server's log, and the client gets `-PLUGINERR`.
//!   - Any call may reach any instance of the plugin: a `static` is a cache, never a place for what
//!     must last.
//!   - Arguments are views that end with the call, which their lifetime says.
//!   - There are no files, no network, no environment and no threads.
//!
//! Without the feature `std` nothing here allocates: a value is read into a buffer of the caller's, and
//! one that has no room there is [`Error::TooLong`]. With `std` there are functions that return `Vec` and
//! `String` beside them.

#![cfg_attr(not(any(feature = "std", test)), no_std)]
#![warn(missing_docs)]

#[cfg(target_arch = "wasm32")]
mod arena;
mod call;
mod called;
mod error;
#[doc(hidden)]
pub mod guest;
mod host;
mod keys;
mod reply;
mod state;
mod text;
mod wait;

pub use call::{log, Arg, Call, ClientField, Level};
pub use called::{Kind, Reply, Value};
pub use error::{Error, Result};
pub use keys::{Comparison, SetOptions, Ttl, Type};
pub use reply::LATER;
pub use text::{format_int, parse_int, Text};
pub use wait::{EventClass, Woken};
