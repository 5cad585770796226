use core::fmt;

use crate::host;

/// What a command returns: an error undoes what it did, and becomes the reply.
pub type Result<T = ()> = core::result::Result<T, Error>;

/// Why something failed. Those of the host become the reply that Redis would give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The key holds a value of another type.
    WrongType,
    /// Not declared by the command, or not granted to the plugin.
    Denied,
    /// The server's maxmemory is reached.
    OutOfMemory,
    /// An argument is out of range.
    Invalid,
    /// The value is no integer, or the result would be none.
    NotInt,
    /// There are as many as there may be.
    Limit,
    /// Not possible where the command is called from.
    Context,
    /// An error that this SDK does not know.
    Host(i32),
    /// The value has so many bytes, more than the buffer that it was to be read into.
    TooLong(usize),
    /// An error reply: a code word and what is wrong, such as `"ERR the lease must be above 0"`.
    Reply(&'static str),
    /// The error reply was given by [`Call::error`](crate::Call::error).
    Replied,
}

/// The result of a host function, from which on smaller ones are errors.
const FIRST: i32 = -100;

impl Error {
    #[cold]
    fn of(code: i32) -> Error {
        match code {
            -100 => Error::WrongType,
            -101 => Error::Denied,
            -102 => Error::OutOfMemory,
            -103 => Error::Invalid,
            -104 => Error::NotInt,
            -105 => Error::Limit,
            -106 => Error::Context,
            other => Error::Host(other),
        }
    }

    /// What `lk_command` returns for it.
    fn code(self) -> Option<i32> {
        Some(match self {
            Error::WrongType => -100,
            Error::Denied => -101,
            Error::OutOfMemory => -102,
            Error::Invalid => -103,
            Error::NotInt => -104,
            Error::Limit => -105,
            Error::Context => -106,
            Error::Host(code) => code,
            Error::TooLong(_) | Error::Reply(_) | Error::Replied => return None,
        })
    }

    fn text(self) -> &'static str {
        match self {
            Error::WrongType => "the key holds a value of another type",
            Error::Denied => "the key was not declared by the command or is not granted to the plugin",
            Error::OutOfMemory => "the server's maxmemory is reached",
            Error::Invalid => "an argument is out of range",
            Error::NotInt => "the value is not an integer or out of range",
            Error::Limit => "there are as many as there may be",
            Error::Context => "not possible where the command is called from",
            Error::Host(_) => "the host answered an error that this SDK does not know",
            Error::TooLong(_) => "ERR the value is longer than the plugin has room for",
            Error::Reply(text) => text,
            Error::Replied => "the error was replied",
        }
    }

    /// Ends a call that has a client with the error: the result of the export.
    #[cold]
    pub(crate) fn reply(self) -> i32 {
        if let Some(code) = self.code() {
            return code;
        }
        if self != Error::Replied {
            let text = self.text();
            unsafe { host::reply_error(text.as_ptr(), text.len()) };
        }
        0
    }

    /// Ends a call without a client: the words go to the log, as there is no reply.
    #[cold]
    pub(crate) fn report(self) -> i32 {
        self.code().unwrap_or_else(|| {
            crate::log(crate::Level::Warning, self.text());
            FIRST - 3
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(feature = "std")]
impl std::error::Error for Error {}

/// The result of a host function, unless it is an error.
#[inline]
pub(crate) fn check(code: i32) -> Result<i32> {
    if code <= FIRST {
        return Err(Error::of(code));
    }
    Ok(code)
}

/// As [`check`], of a wider result.
#[inline]
pub(crate) fn check64(code: i64) -> Result<i64> {
    if code <= i64::from(FIRST) {
        return Err(Error::of(code as i32));
    }
    Ok(code)
}

/// What a function answers that copies into a buffer: the bytes, none if there is no such key.
#[inline]
pub(crate) fn filled(code: i32, buf: &[u8]) -> Result<Option<&[u8]>> {
    let n = check(code)?;
    if n < 0 {
        return Ok(None);
    }
    match buf.get(..n as usize) {
        Some(bytes) => Ok(Some(bytes)),
        None => Err(Error::TooLong(n as usize)),
    }
}

/// The bytes that a function copies, in a vector that has room for them.
#[cfg(feature = "std")]
pub(crate) fn owned(read: impl Fn(*mut u8, usize) -> i32) -> Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; 64];
    loop {
        let n = check(read(bytes.as_mut_ptr(), bytes.len()))?;
        if n < 0 {
            return Ok(None);
        }
        let fits = n as usize <= bytes.len();
        bytes.resize(n as usize, 0);
        if fits {
            return Ok(Some(bytes));
        }
    }
}
