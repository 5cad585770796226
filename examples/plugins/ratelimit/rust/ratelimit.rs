//! The command of redis-cell: a limit on how often something may happen, by the generic cell rate
//! algorithm.
//!
//!     CL.THROTTLE key max_burst count period [quantity]
//!
//! It allows count actions in period seconds, and max_burst at once beyond. The reply has five
//! integers: 0 if the action is allowed and 1 if not; the limit, which is max_burst+1; how much of it
//! remains; in how many seconds to try again, -1 if the action is allowed; in how many seconds the
//! whole limit is there again.

#![no_std]
#![forbid(unsafe_code)]

use latchkey::{format_int, parse_int, Call, Error, Result, SetOptions};

latchkey::plugin! {
    manifest: "../manifest.json",
    commands: { 1 => throttle },
}

// Times are in nanoseconds.
const SECOND: i64 = 1_000_000_000;
const MILLISECOND: i64 = 1_000_000;

// What the arguments and times may be at most, so that no sum overflows.
const MAX_ARG: i64 = 1_000_000_000;
const MAX_TIME: i64 = i64::MAX / 4;

fn throttle(c: &Call) -> Result {
    if c.nargs() > 6 {
        return Err(Error::Reply("ERR wrong number of arguments for 'cl.throttle' command"));
    }
    let mut n = [0, 0, 0, 1];
    for (i, n) in (2..c.nargs()).zip(&mut n) {
        *n = match c.int(i)? {
            v @ 0..=MAX_ARG => v,
            _ => return Err(Error::Reply("ERR max_burst, count, period and quantity must be 0 to 1000000000")),
        };
    }
    let [burst, count, period, quantity] = n;
    if count == 0 || period == 0 {
        return Err(Error::Reply("ERR zero rates are not supported"));
    }
    // The time between two actions at the allowed rate, and how far ahead of that rate somebody may
    // get.
    let interval = ((period * SECOND) as f64 / count as f64) as i64;
    let (tolerance, increment) = match (times(interval, burst + 1), times(interval, quantity)) {
        (Some(tolerance), Some(increment)) if interval > 0 => (tolerance, increment),
        (Some(_), None) if interval > 0 => return Err(Error::Reply("ERR the quantity is out of range")),
        _ => return Err(Error::Reply("ERR the rate is out of range")),
    };

    let (key, now) = (c.arg(1), c.now_ms() * MILLISECOND);
    // When the next action would be due at the allowed rate.
    let stored = match c.get(key, &mut [0; 20]) {
        Ok(text) => text.map(parse_int),
        Err(Error::TooLong(_)) => Some(None),
        Err(e) => return Err(e),
    };
    let arrival = match stored {
        None => now,
        Some(Some(t)) if (0..=MAX_TIME * 3).contains(&t) => t,
        Some(_) => return Err(Error::Reply("ERR the key does not hold a limit")),
    };
    let next = now.max(arrival) + increment;
    let early = next - tolerance - now; // by how much this action comes too early
    let (mut left, mut retry) = (next - now, -1);
    if early > 0 {
        left = arrival - now;
        if increment <= tolerance {
            retry = seconds(early);
        }
    } else if quantity > 0 || stored.is_none() {
        // Below a millisecond there is nothing to remember.
        let ms = (left / MILLISECOND).max(1);
        c.set(key, format_int(next, &mut [0; 20]), SetOptions::px(ms))?;
    }
    let free = tolerance - left;
    c.reply_array(5);
    c.reply_int((early > 0).into());
    c.reply_int(burst + 1);
    c.reply_int(if free > -interval { free / interval } else { 0 });
    c.reply_int(retry);
    c.reply_int(seconds(left));
    Ok(())
}

/// A product of what is not negative, none if it is more than MAX_TIME.
fn times(a: i64, b: i64) -> Option<i64> {
    a.checked_mul(b).filter(|&t| t <= MAX_TIME)
}

/// Rounds up, so that nobody tries again too early, what has a millisecond or more beyond a whole
/// second.
fn seconds(t: i64) -> i64 {
    t / SECOND + i64::from(t % SECOND >= MILLISECOND)
}
