use crate::error::{check, check64, filled};
use crate::{host, Call, Result};

/// SET's options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetOptions {
    /// Only if the key does not exist.
    pub nx: bool,
    /// Only if it does.
    pub xx: bool,
    /// Keep the time to live.
    pub keep_ttl: bool,
    /// Milliseconds after commit in which the key expires; 0: never.
    pub px: i64,
    /// Or the Unix time in milliseconds at which it does; 0: none.
    pub px_at: i64,
}

impl SetOptions {
    /// The key expires `ms` milliseconds after commit.
    #[inline]
    pub fn px(ms: i64) -> SetOptions {
        SetOptions { px: ms, ..SetOptions::default() }
    }

    /// As the host reads them: the flags, and a time.
    #[inline]
    pub(crate) fn packed(self) -> (u32, i64) {
        let flags = u32::from(self.nx) | u32::from(self.xx) << 1 | u32::from(self.keep_ttl) << 2;
        if self.px_at != 0 {
            return (flags | 8, self.px_at);
        }
        (flags, self.px)
    }
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// The key does not exist.
    None,
    /// A string.
    String,
    /// A list.
    List,
    /// A set.
    Set,
    /// A hash.
    Hash,
    /// A sorted set.
    ZSet,
    /// A stream.
    Stream,
    /// A state that this plugin keeps at the key.
    Own,
    /// That of another plugin.
    Other,
}

/// What comparing a key's value came to; as an integer what the commands of this kind reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// There is no such key.
    Missing = -1,
    /// It holds something else.
    Different = 0,
    /// It was equal, and was set or deleted.
    Equal = 1,
}

impl Comparison {
    #[inline]
    fn of(code: i32) -> Comparison {
        match code {
            1 => Comparison::Equal,
            0 => Comparison::Different,
            _ => Comparison::Missing,
        }
    }
}

/// How long a key has to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// The key does not exist.
    Missing,
    /// It never expires.
    Never,
    /// So many milliseconds.
    Millis(i64),
}

impl Ttl {
    /// As PTTL has it: -2 for no key, -1 for one that never expires.
    #[inline]
    pub fn as_pttl(self) -> i64 {
        match self {
            Ttl::Missing => -2,
            Ttl::Never => -1,
            Ttl::Millis(ms) => ms,
        }
    }
}

/// Keys. A command reaches those that its manifest declares and grants. What a call has written it
/// also reads.
impl Call<'_> {
    /// The string at `key`, in `buf`; none if there is no key.
    #[inline]
    pub fn get<'b>(&self, key: &[u8], buf: &'b mut [u8]) -> Result<Option<&'b [u8]>> {
        filled(unsafe { host::get(key.as_ptr(), key.len(), buf.as_mut_ptr(), buf.len()) }, buf)
    }

    /// The string at `key`; none if there is no key.
    #[cfg(feature = "std")]
    pub fn get_vec(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        crate::error::owned(|buf, cap| unsafe { host::get(key.as_ptr(), key.len(), buf, cap) })
    }

    /// Writes a string, whatever was there; false if an option forbids it.
    #[inline]
    pub fn set(&self, key: &[u8], value: &[u8], options: SetOptions) -> Result<bool> {
        let (flags, px) = options.packed();
        let code = unsafe { host::set(key.as_ptr(), key.len(), value.as_ptr(), value.len(), flags, px) };
        Ok(check(code)? == 1)
    }

    /// Deletes a key of any type; false if there was none.
    #[inline]
    pub fn del(&self, key: &[u8]) -> Result<bool> {
        Ok(check(unsafe { host::del(key.as_ptr(), key.len()) })? == 1)
    }

    /// Whether the key exists.
    #[inline]
    pub fn exists(&self, key: &[u8]) -> Result<bool> {
        Ok(check(unsafe { host::exists(key.as_ptr(), key.len()) })? == 1)
    }

    /// The type of the value at `key`.
    #[inline]
    pub fn key_type(&self, key: &[u8]) -> Result<Type> {
        Ok(match check(unsafe { host::key_type(key.as_ptr(), key.len()) })? {
            0 => Type::None,
            1 => Type::String,
            2 => Type::List,
            3 => Type::Set,
            4 => Type::Hash,
            5 => Type::ZSet,
            6 => Type::Stream,
            7 => Type::Own,
            _ => Type::Other,
        })
    }

    /// Adds `delta` to the integer at `key`, 0 if there is none, and keeps its time to live: the sum.
    #[inline]
    pub fn incr_by(&self, key: &[u8], delta: i64) -> Result<i64> {
        let mut sum = 0;
        check(unsafe { host::incrby(key.as_ptr(), key.len(), delta, &mut sum) })?;
        Ok(sum)
    }

    /// Writes `value` if the string at `key` is `old`. `px` 0 keeps the time to live; above 0 the key
    /// expires `px` milliseconds after commit.
    #[inline]
    pub fn compare_and_set(&self, key: &[u8], old: &[u8], value: &[u8], px: i64) -> Result<Comparison> {
        let code =
            unsafe { host::cas(key.as_ptr(), key.len(), old.as_ptr(), old.len(), value.as_ptr(), value.len(), px) };
        check(code).map(Comparison::of)
    }

    /// Deletes the key if the string at it is `value`.
    #[inline]
    pub fn compare_and_delete(&self, key: &[u8], value: &[u8]) -> Result<Comparison> {
        let code = unsafe { host::cad(key.as_ptr(), key.len(), value.as_ptr(), value.len()) };
        check(code).map(Comparison::of)
    }

    /// `compare_and_delete` of two arguments by their indexes, as the client has sent them. As the first
    /// thing that a command does it is the quickest: the host mostly knows the answer before the command
    /// begins. An index that no argument has ends the call.
    #[inline]
    pub fn compare_and_delete_args(&self, key: usize, value: usize) -> Result<Comparison> {
        check(unsafe { host::cad_args(key, value) }).map(Comparison::of)
    }

    /// The time to live.
    #[inline]
    pub fn pttl(&self, key: &[u8]) -> Result<Ttl> {
        Ok(match check64(unsafe { host::pttl(key.as_ptr(), key.len()) })? {
            -2 => Ttl::Missing,
            -1 => Ttl::Never,
            ms => Ttl::Millis(ms),
        })
    }

    /// Has the key expire `ms` milliseconds after commit, 0: never; false if there is none.
    #[inline]
    pub fn pexpire(&self, key: &[u8], ms: i64) -> Result<bool> {
        Ok(check(unsafe { host::pexpire(key.as_ptr(), key.len(), ms) })? == 1)
    }

    /// Sends a keyspace event of the module class about the key at commit.
    #[inline]
    pub fn notify(&self, event: &str, key: &[u8]) -> Result {
        check(unsafe { host::notify(event.as_ptr(), event.len(), key.as_ptr(), key.len()) })?;
        Ok(())
    }
}
