use crate::error::{check, check64};
use crate::{host, Arg, Call, Result};

/// What `wake` did for a client that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// It gave the reply.
    Done,
    /// It gave none: the client goes on waiting, and keeps its place.
    Again,
}

/// A class of keyspace events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventClass {
    /// DEL, EXPIRE and the like.
    Generic,
    /// Of strings.
    String,
    /// Of lists.
    List,
    /// Of sets.
    Set,
    /// Of hashes.
    Hash,
    /// Of sorted sets.
    ZSet,
    /// Of streams.
    Stream,
    /// A key has expired.
    Expired,
    /// A key was evicted.
    Evicted,
    /// A key is new.
    New,
    /// What plugins send with [`Call::notify`].
    Module,
}

impl EventClass {
    pub(crate) fn of(class: i32) -> Option<EventClass> {
        Some(match class {
            0 => EventClass::Generic,
            1 => EventClass::String,
            2 => EventClass::List,
            3 => EventClass::Set,
            4 => EventClass::Hash,
            5 => EventClass::ZSet,
            6 => EventClass::Stream,
            7 => EventClass::Expired,
            8 => EventClass::Evicted,
            9 => EventClass::New,
            10 => EventClass::Module,
            _ => return None,
        })
    }
}

/// Waiting, timers, and clients that go.
impl Call<'_> {
    /// Has the client wait for keys that the command declares, for at most `timeout` milliseconds, 0
    /// for ever: `c.block([c.arg(1).into()], 0, 0)`. The command then returns `Ok(())` without a reply;
    /// what it has changed is undone. `wake` is called, with the token, when one of the keys is changed,
    /// deleted or expires, and it is this client's turn.
    #[inline]
    pub fn block<'b>(&self, keys: impl AsRef<[Arg<'b>]>, timeout: i64, token: i64) -> Result {
        let keys = keys.as_ref();
        check(unsafe { host::block(keys.as_ptr(), keys.len(), timeout, token) })?;
        Ok(())
    }

    /// Wakes at commit those who wait for the key, though it does not change.
    #[inline]
    pub fn wake_key(&self, key: &[u8]) -> Result {
        check(unsafe { host::wake(key.as_ptr(), key.len()) })?;
        Ok(())
    }

    /// Has `closed` called, with the key and the token, when the connection of the call's client ends.
    /// Of one client and key the last token counts.
    #[inline]
    pub fn bind_client(&self, key: &[u8], token: i64) -> Result {
        check(unsafe { host::bind_client(key.as_ptr(), key.len(), token) })?;
        Ok(())
    }

    /// Takes back what [`Call::bind_client`] has bound to the key, for whatever client.
    #[inline]
    pub fn unbind_client(&self, key: &[u8]) -> Result {
        check(unsafe { host::unbind_client(key.as_ptr(), key.len()) })?;
        Ok(())
    }

    /// Has `timer` called with the token, `ms` milliseconds after commit: the timer's number.
    #[inline]
    pub fn set_timer(&self, ms: i64, token: i64) -> Result<i64> {
        check64(unsafe { host::timer_set(ms, token) })
    }

    /// Takes a timer back; false if there is none of that number.
    #[inline]
    pub fn cancel_timer(&self, timer: i64) -> Result<bool> {
        Ok(check(unsafe { host::timer_cancel(timer) })? == 1)
    }
}
