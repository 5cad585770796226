//! Compares the string at a key with a value, and deletes it, replaces it, or gives it a new time to
//! live if they are equal. All three reply 1 if they were, 0 if not, -1 if there is no such key.
//!
//!     CAD.WASM key value                      compare and delete
//!     CAS.WASM key old new [PX milliseconds]  compare and set
//!     CAE.WASM key value milliseconds         compare and expire

#![no_std]
#![forbid(unsafe_code)]

use latchkey::{Call, Comparison, Error, Result};

latchkey::plugin! {
    manifest: "../manifest.json",
    commands: {
        1 => compare_and_delete,
        2 => compare_and_set,
        3 => compare_and_expire,
    },
}

fn compare_and_delete(c: &Call) -> Result {
    let result = c.compare_and_delete_args(1, 2)?;
    c.reply_int(result as i64);
    Ok(())
}

/// Whether a key can live for so long from now on; Redis refuses times that overflow, too.
fn lasts(c: &Call, ms: i64) -> bool {
    ms > 0 && ms <= i64::MAX - c.now_ms()
}

fn compare_and_set(c: &Call) -> Result {
    let ms = match c.nargs() {
        4 => 0,
        6 if c.is(4, "px") => match c.int(5)? {
            ms if lasts(c, ms) => ms,
            _ => return Err(Error::Reply("ERR invalid expire time in 'cas.wasm' command")),
        },
        _ => return Err(Error::Reply("ERR syntax error")),
    };
    let result = c.compare_and_set(c.arg(1), c.arg(2), c.arg(3), ms)?;
    c.reply_int(result as i64);
    Ok(())
}

fn compare_and_expire(c: &Call) -> Result {
    let (key, value, ms) = (c.arg(1), c.arg(2), c.int(3)?);
    if !lasts(c, ms) {
        return Err(Error::Reply("ERR invalid expire time in 'cae.wasm' command"));
    }
    let mut held = [0; 256];
    let result = match c.get(key, &mut held) {
        Ok(None) => Comparison::Missing,
        Ok(Some(held)) if held != value => Comparison::Different,
        Ok(Some(_)) => {
            c.pexpire(key, ms)?;
            Comparison::Equal
        }
        // What has no room is not copied but compared by replacing it with itself.
        Err(Error::TooLong(_)) => c.compare_and_set(key, value, value, ms)?,
        Err(e) => return Err(e),
    };
    c.reply_int(result as i64);
    Ok(())
}
