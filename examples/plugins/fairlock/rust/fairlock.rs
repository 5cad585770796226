//! A lock whose waiters are served first come, first served, without polling. Who gets it gets a
//! fencing number with it, greater than every one before. The lock ends with its lease, and when the
//! connection of its holder ends.
//!
//!     FAIRLOCK.ACQUIRE key lease-ms [timeout-ms]   the fence, or nil; waits if a timeout is given, for ever if it is 0
//!     FAIRLOCK.RELEASE key fence                   1, 0 if another holds it, -1 if nobody does
//!     FAIRLOCK.EXTEND key fence lease-ms           likewise; the lease counts from now
//!     FAIRLOCK.STATUS key                          fence, client and lease in ms; nil if nobody holds it

#![no_std]
#![forbid(unsafe_code)]

use latchkey::{Call, Error, Result, SetOptions, Woken};

latchkey::plugin! {
    manifest: "../manifest.json",
    commands: {
        1 => acquire,
        2 => release,
        3 => extend,
        4 => status,
    },
    wake: wake,
    closed: closed,
}

/// A lock is the state of its key: the fence and the holder's client id, eight bytes each, little endian.
/// The lease is the key's time to live.
struct Lock {
    fence: i64,
    client: i64,
}

const ENCODING: u32 = 1;

/// Ten years.
const MAX_LEASE: i64 = 10 * 365 * 24 * 3600 * 1000;

/// The lock at a key; none if nobody holds it.
fn holder(c: &Call, key: &[u8]) -> Result<Option<Lock>> {
    let (mut fence, mut client) = ([0; 8], [0; 8]);
    let mut state = [0; 16];
    match c.read_key_state(key, 0, &mut state)? {
        None => return Ok(None),
        Some(n) if n < state.len() => return Err(Error::Reply("ERR the state of the lock is damaged")),
        Some(_) => {}
    }
    fence.copy_from_slice(&state[..8]);
    client.copy_from_slice(&state[8..]);
    Ok(Some(Lock { fence: i64::from_le_bytes(fence), client: i64::from_le_bytes(client) }))
}

/// The client's id, 0 in a call that has no client.
fn me(c: &Call) -> i64 {
    c.client_id().unwrap_or(0)
}

fn lease(c: &Call, i: usize) -> Result<i64> {
    match c.int(i)? {
        ms @ 1..=MAX_LEASE => Ok(ms),
        _ => Err(Error::Reply("ERR the lease must be 1 to 315360000000 milliseconds")),
    }
}

fn acquire(c: &Call) -> Result {
    if c.nargs() > 4 {
        return Err(Error::Reply("ERR syntax error"));
    }
    let (key, lease) = (c.arg(1), lease(c, 2)?);
    let mut timeout = None;
    if c.nargs() == 4 {
        timeout = match c.int(3) {
            Ok(ms) if ms >= 0 => Some(ms),
            Ok(_) => return Err(Error::Reply("ERR timeout is negative")),
            Err(_) => return Err(Error::Reply("ERR timeout is not an integer or out of range")),
        };
    }
    match (holder(c, key)?, timeout) {
        (None, _) => take(c, key, lease),
        (Some(_), None) => {
            c.reply_null();
            Ok(())
        }
        (Some(lock), _) if lock.client == me(c) => {
            Err(Error::Reply("ERR this client holds the lock, and would wait for itself"))
        }
        (Some(_), Some(timeout)) => c.block([key.into()], timeout, 0),
    }
}

/// Called in turn for those who wait, when the lock may be free.
fn wake(c: &Call, _token: i64, timeout: bool) -> Result<Woken> {
    let key = c.arg(1);
    if holder(c, key)?.is_none() {
        take(c, key, lease(c, 2)?)?;
    } else if timeout {
        c.reply_null();
    } else {
        return Ok(Woken::Again);
    }
    Ok(Woken::Done)
}

fn take(c: &Call, key: &[u8], lease: i64) -> Result {
    let fence = c.fence();
    let mut state = [0; 16];
    state[..8].copy_from_slice(&fence.to_le_bytes());
    state[8..].copy_from_slice(&me(c).to_le_bytes());
    c.set_key_state(key, &state, ENCODING, SetOptions::px(lease))?;
    match c.bind_client(key, fence) {
        Ok(()) | Err(Error::Context) => {} // there may be no client
        Err(e) => return Err(e),
    }
    c.reply_int(fence);
    Ok(())
}

/// What RELEASE and EXTEND reply if the lock is not held with the fence; none if it is.
fn refused(c: &Call, key: &[u8], fence: i64) -> Result<Option<i64>> {
    Ok(match holder(c, key)? {
        None => Some(-1),
        Some(lock) if lock.fence != fence => Some(0),
        Some(_) => None,
    })
}

fn release(c: &Call) -> Result {
    let (key, fence) = (c.arg(1), c.int(2)?);
    let refused = refused(c, key, fence)?;
    if refused.is_none() {
        c.del(key)?;
        c.unbind_client(key)?;
    }
    c.reply_int(refused.unwrap_or(1));
    Ok(())
}

fn extend(c: &Call) -> Result {
    let (key, fence, lease) = (c.arg(1), c.int(2)?, lease(c, 3)?);
    let refused = refused(c, key, fence)?;
    if refused.is_none() {
        c.pexpire(key, lease)?;
    }
    c.reply_int(refused.unwrap_or(1));
    Ok(())
}

fn status(c: &Call) -> Result {
    let key = c.arg(1);
    let lock = match holder(c, key)? {
        Some(lock) => lock,
        None => {
            c.reply_null();
            return Ok(());
        }
    };
    let left = c.pttl(key)?;
    c.reply_map(3);
    c.reply_bulk("fence");
    c.reply_int(lock.fence);
    c.reply_bulk("client");
    c.reply_int(lock.client);
    c.reply_bulk("lease");
    c.reply_int(left.as_pttl());
    Ok(())
}

/// Called when a client is gone to whom a lock was given with this fence.
fn closed(c: &Call, key: &[u8], fence: i64) -> Result {
    if let Ok(Some(lock)) = holder(c, key) {
        if lock.fence == fence {
            c.del(key)?;
        }
    }
    Ok(())
}
